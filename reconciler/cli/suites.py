# SPDX-License-Identifier: Apache-2.0
"""`sluice test`: runs the `PolicyTest` suites of a directory with the webhook's own core."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from policies.documents.load import LoadResult
from policies.documents.policytest import PolicyTestCase, PolicyTestDocument
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.workload import Workloads
from policies.pod.reading import MalformedError
from policies.preview.expand import PreviewPod, expand
from policies.preview.judge import differences
from policies.preview.merge import merged
from policies.preview.preview import ANYBODY, preview
from reconciler.cli.inputs import BadInputError, facts_from, manifests_from
from reconciler.runtime.loading import Compiler


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: what did not hold; nothing if it passed."""

    suite: PolicyTestDocument
    case: PolicyTestCase
    differences: tuple[str, ...]


def run_suites(
    root: Path, loaded: LoadResult, compiler: Compiler, now: datetime
) -> Iterator[CaseResult]:
    """Yield each case's result as it is known. Raises BadInputError for files that are missing.

    Paths in a suite are relative to the suite's own file. The load must have given a set.
    """
    if loaded.policy_set is None:
        raise BadInputError(loaded.problems)
    for suite in loaded.tests:
        base = root if root.is_dir() else root.parent
        folder = (base / suite.file).parent
        facts = facts_from(compiler, folder / suite.facts if suite.facts else None, now)
        for case in suite.cases:
            found = tuple(_run(folder, case, loaded.policy_set, facts))
            yield CaseResult(suite, case, found)


def _run(folder: Path, case: PolicyTestCase, policies: PolicySet, facts: Facts) -> Iterator[str]:
    pods = list(_pods(folder, case, policies.workloads))
    if not pods:
        yield f"{case.pod.file} holds no pods"
    user = case.pod.user if case.pod.user.username else ANYBODY
    for pod in pods:
        yield from differences(case.expect, preview(policies, facts, pod, user).decision)


def _pods(folder: Path, case: PolicyTestCase, workloads: Workloads) -> Iterator[PreviewPod]:
    for manifest in manifests_from([folder / case.pod.file]):
        given = merged(manifest.value, case.pod.patch) if case.pod.patch else manifest.value
        if case.pod.namespace is not None:
            given = merged(given, {"metadata": {"namespace": case.pod.namespace}})
        try:
            expanded = list(expand(given, "default", workloads))
        except MalformedError as error:
            raise manifest.problem(str(error)) from error
        yield from (item for item in expanded if isinstance(item, PreviewPod))


def print_results(results: Iterator[CaseResult], console: Console) -> tuple[int, int]:
    """Print a line for each case as it is known; return how many passed and failed."""
    passed = failed = 0
    for result in results:
        name = f"{result.suite.name}: {result.case.name}"
        if result.differences:
            failed += 1
            place = f"{result.suite.file}:{result.case.line}"
            console.print(f"[red]FAILED[/red] {escape(name)} [dim]({escape(place)})[/dim]")
            for line in result.differences:
                console.print(f"       {line}", markup=False, highlight=False)
        else:
            passed += 1
            console.print(f"[green]passed[/green] {escape(name)}")
    return passed, failed
