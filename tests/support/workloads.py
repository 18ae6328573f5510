# SPDX-License-Identifier: Apache-2.0
"""Objects of any known kind, with a pod wherever the kind keeps a template."""

from typing import Any

from policies.model.workload import Path, PodForm, PodTemplate, Wildcard, WorkloadKind
from tests.support.builders import Json, catalog

NAME = "gpu"
"""What every wildcard stands for."""


def kinds() -> tuple[WorkloadKind, ...]:
    """Return the shipped kinds."""
    return catalog().workloads.kinds


def kind_of(name: str) -> WorkloadKind:
    """Return the shipped kind of this name; no two share one."""
    return next(kind for kind in kinds() if kind.kind == name)


def workload(kind: WorkloadKind, found: Any, *templates: PodTemplate, **metadata: Any) -> Json:
    """Return an object with a pod's parts at each of these templates, or at all of its kind."""
    made: Json = {
        "apiVersion": f"{kind.group}/{kind.versions[0]}",
        "kind": kind.kind,
        "metadata": {"name": "llm", "namespace": "chat", **metadata},
    }
    for template in templates or kind.templates:
        put(made, template.path, _content(template, found))
    return made


def put(target: Any, path: Path, value: Any) -> None:
    """Put a value at a path, making what is missing on the way; objects are joined."""
    step, rest = path[0], path[1:]
    if step is Wildcard.ITEMS:
        target[:] = target or [{"name": NAME}]
        key: Any = 0
        there = target[0]
    else:
        key = NAME if step is Wildcard.VALUES else step
        there = target.get(key)
    if rest:
        empty: Any = [] if rest[0] is Wildcard.ITEMS else {}
        target[key] = there if isinstance(there, type(empty)) else empty
        put(target[key], rest, value)
    else:
        are_objects = isinstance(there, dict) and isinstance(value, dict)
        target[key] = {**there, **value} if are_objects else value


def _content(template: PodTemplate, found: Any) -> Any:
    """Return the pod's parts as the template's form holds them."""
    if not isinstance(found, dict):
        return found
    parts = {key: found[key] for key in ("metadata", "spec") if key in found}
    if template.form is PodForm.TEMPLATE or not isinstance(parts.get("spec"), dict):
        return parts
    named = {"name": NAME} if template.path[-1] is Wildcard.ITEMS else {}
    return {**named, "metadata": parts.get("metadata"), **parts["spec"]}
