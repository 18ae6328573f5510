# SPDX-License-Identifier: Apache-2.0
"""`Settings.spec.workloads`: kinds whose pods are told of, and what no schema can say of them."""

from collections.abc import Iterable, Iterator
from typing import cast

from policies.documents.field import Field
from policies.documents.problems import Problem, Severity, quoted
from policies.model.request import JsonObject
from policies.model.workload import PodForm, WorkloadKind
from policies.workloads.paths import parse_factor, parse_path, prefix, shares_wildcards
from policies.workloads.reading import read_kind, read_table


def compile_workloads(field: Field) -> tuple[WorkloadKind, ...]:
    """Return the kinds, those left out that the schema has found at fault."""
    return tuple(
        read_kind(cast("JsonObject", item.value)) for item in field.items() if item.is_sound
    )


def check_workloads(field: Field) -> Iterator[Problem]:
    """Yield what is wrong within a kind and between kinds."""
    kinds = list(field.items())
    yield from _resources_named_twice(kinds)
    yield from _shipped(kinds)
    for kind in kinds:
        group = kind.at("group")
        if group.exists and "." not in group.text():
            message = f"{quoted(group.text())} is a group of Kubernetes itself"
            yield group.problem(message, "write the group of a custom resource, with a dot")
        for template in kind.at("templates").items():
            yield from _template(template)


def _resources_named_twice(kinds: Iterable[Field]) -> Iterator[Problem]:
    """Tell of a second kind of one plural name; the schema tells of kinds named twice."""
    first: dict[tuple[str, str], str] = {}
    for kind in kinds:
        resource, name = kind.at("resource"), kind.at("kind").text()
        other = first.setdefault((kind.at("group").text(), resource.text()), name)
        if resource.exists and other != name:
            yield resource.problem(f"is the plural name of {other} already")


def _shipped(kinds: Iterable[Field]) -> Iterator[Problem]:
    shipped = {(kind["group"], kind["kind"]) for kind in read_table()["kinds"]}
    for kind in kinds:
        name = kind.at("kind")
        if (kind.at("group").text(), name.text()) in shipped:
            yield name.problem("replaces the shipped kind of its name", severity=Severity.NOTE)


def _template(template: Field) -> Iterator[Problem]:
    path, replicas = parse_path(template.at("path").text()), template.at("replicas")
    for item in replicas.items():
        if template.at("path").exists and not shares_wildcards(
            parse_factor(item.text()).path, path
        ):
            message = "must begin as the template's path does, up to its last * or [*]"
            yield item.problem(message)
    for item in (template.at("fallback"), *template.at("inherits").items()):
        if prefix(parse_path(item.text())):
            yield item.problem("must name one place, without * and [*]")
    if template.at("fallback").exists and prefix(path):
        yield template.at("fallback").problem("goes with a path that has no * or [*]")
    if template.at("counted").value is False and replicas.exists:
        yield replicas.problem("has no effect with `counted: false`", "leave one of them out")
    containers = template.at("containers")
    if containers.exists and template.at("pod").text(PodForm.TEMPLATE) != PodForm.SPEC:
        yield containers.problem("needs `pod: Spec`: a pod template has all its containers")
