# SPDX-License-Identifier: Apache-2.0
"""`sluice review`: what would become of manifests, told in words or as the changed manifests."""

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TextIO

import yaml
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax

from policies.admission.charging import amount
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.request import User
from policies.pod.reading import MalformedError
from policies.preview.expand import NoPods, PreviewPod, expand
from policies.preview.preview import ANYBODY, Preview, preview
from policies.preview.queues import miscounted
from policies.preview.total import Total, total
from reconciler.cli.inputs import Manifest


class Output(StrEnum):
    """What is printed: a report with a diff, the pods as stored, or the patches."""

    TEXT = "text"
    YAML = "yaml"
    JSON = "json"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class Question:
    """What manifests are held against."""

    policies: PolicySet
    facts: Facts
    namespace: str = "default"
    user: User = ANYBODY


def review(question: Question, manifests: Iterable[Manifest]) -> tuple[Preview | NoPods, ...]:
    """Preview every pod of every manifest. Raises BadInputError for what no API server takes."""
    return tuple(item for manifest in manifests for item in _review(question, manifest))


def print_review(
    policies: PolicySet,
    found: Sequence[Preview | NoPods],
    output: Output,
    console: Console,
    plain: TextIO,
) -> None:
    """Print the report to the console, or the machine-readable forms to the plain stream."""
    previews = [item for item in found if isinstance(item, Preview)]
    match output:
        case Output.TEXT:
            for item in found:
                _print_text(item, console)
            _print_total(total(policies, previews), console)
        case Output.YAML:
            pods = [p.after for p in previews if p.after is not None]
            yaml.safe_dump_all(pods, plain, sort_keys=False)
            _print_refusals(previews, console)
        case Output.JSON:
            json.dump([_as_json(p) for p in previews], plain, indent=2)
            plain.write("\n")
        case Output.PATCH:
            json.dump([[dict(o) for o in p.decision.patch] for p in previews], plain, indent=2)
            plain.write("\n")
            _print_refusals(previews, console)


def _review(question: Question, manifest: Manifest) -> Iterator[Preview | NoPods]:
    policies = question.policies
    try:
        for item in expand(manifest.value, question.namespace, policies.workloads):
            if isinstance(item, PreviewPod):
                yield preview(policies, question.facts, item, question.user)
            else:
                yield replace(item, notes=tuple(miscounted(policies, item.manifest)))
    except MalformedError as error:
        raise manifest.problem(str(error)) from error


def _print_text(item: Preview | NoPods, console: Console) -> None:
    if isinstance(item, NoPods):
        console.print(f"[dim]{escape(item.label)}: holds no pods that Sluice knows of[/dim]")
        for note in item.notes:
            console.print(f"  {note}", markup=False, highlight=False)
        return
    decision = item.decision
    heading = f"[bold]{escape(item.pod.label)}[/bold] in {escape(item.pod.namespace)}"
    if not decision.allowed:
        console.print(f"{heading}: [red]refused[/red]")
        for violation in decision.violations:
            console.print(f"  {escape(str(violation))}", highlight=False)
        return
    by = f" by policy {decision.policy}" if decision.policy else ""
    console.print(f"{heading}: [green]allowed[/green]{escape(by)}")
    for warning in decision.warnings:
        console.print(f"  {escape(warning.removeprefix('sluice: '))}", highlight=False)
    if lines := _diff(item):
        console.print(Syntax(lines, "diff", theme="ansi_dark", background_color="default"))


def _print_total(sum_of: Total, console: Console) -> None:
    """Print what all pods come to; what one pod comes to is said already."""
    if sum_of.pods > 1:
        refused = f"; {_count(sum_of.refused, 'pod')} refused" if sum_of.refused else ""
        console.print(
            f"{_count(sum_of.devices, 'GPU')} in all by {sum_of.pods} pods; "
            f"{amount(sum_of.charge_milli)} charged{refused}",
            highlight=False,
        )
    if sum_of.uncounted:
        which = ", ".join(sum_of.uncounted)
        console.print(f"not counted, since the number is not said: {which}", markup=False)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _diff(item: Preview) -> str:
    if item.after is None:
        return ""
    before = yaml.safe_dump(item.before, sort_keys=False).splitlines()
    after = yaml.safe_dump(item.after, sort_keys=False).splitlines()
    return "\n".join(difflib.unified_diff(before, after, "asked", "given", lineterm="", n=2))


def _print_refusals(previews: Sequence[Preview], console: Console) -> None:
    for item in previews:
        if not item.decision.allowed:
            console.print(f"{item.pod.label}: {item.decision.message}", markup=False)


def _as_json(item: Preview) -> dict[str, object]:
    decision = item.decision
    return {
        "object": item.pod.label,
        "namespace": item.pod.namespace,
        "replicas": item.pod.count,
        "verdict": str(decision.verdict),
        "reasons": [str(reason) for reason in decision.reasons],
        "message": decision.message,
        "warnings": list(decision.warnings),
        "tenant": decision.tenant,
        "policy": decision.policy,
        "profile": decision.profile,
        "matched": list(decision.matched),
        "generation": decision.generation,
        "asked": dict(decision.asked),
        "given": dict(decision.given),
        "chargeMilliGpu": decision.charge_milli,
        "patch": [dict(operation) for operation in decision.patch],
        "pod": item.after,
    }
