# SPDX-License-Identifier: Apache-2.0
"""From the JSON of a kind to its value: the shipped table and `Settings` are written alike.

What is read here satisfies the schema of `Settings`; a test holds the shipped table to it.
"""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from policies.cel.schema import load_schema
from policies.model.workload import (
    ContainerSource,
    PodFields,
    PodForm,
    PodTemplate,
    WorkloadKind,
    Workloads,
)
from policies.workloads.paths import parse_factor, parse_path

TABLE: Final = "workloads.json"
ANY_VERSION: Final = "*"
CONTAINER: Final = "main"
"""What a container is called that its kind gives no name."""


def shipped_workloads() -> Workloads:
    """Read the shipped kinds; they are part of the package, so a fault in them is a bug."""
    messages = load_schema().messages
    fields = PodFields(frozenset(messages["V1PodSpec"]), frozenset(messages["V1Container"]))
    return Workloads(tuple(read_kind(raw) for raw in read_table()["kinds"]), fields)


def read_table() -> dict[str, Any]:
    """Return the shipped table as it is written."""
    file = resources.files("policies.workloads").joinpath("data", TABLE)
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded


def read_kind(raw: Mapping[str, Any]) -> WorkloadKind:
    """Return one kind."""
    return WorkloadKind(
        group=raw["group"],
        resource=raw["resource"],
        kind=raw["kind"],
        versions=tuple(raw.get("versions", (ANY_VERSION,))),
        templates=tuple(_template(template, raw["kind"]) for template in raw["templates"]),
    )


def _template(raw: Mapping[str, Any], kind: str) -> PodTemplate:
    fallback = raw.get("fallback")
    return PodTemplate(
        path=parse_path(raw["path"]),
        owner=raw.get("owner", kind),
        account=raw.get("account", ""),
        form=PodForm(raw.get("pod", PodForm.TEMPLATE)),
        name=raw.get("name", ""),
        fallback=None if fallback is None else parse_path(fallback),
        replicas=(
            tuple(map(parse_factor, raw.get("replicas", ()))) if raw.get("counted", True) else None
        ),
        containers=tuple(
            ContainerSource(parse_path(source["path"]), source.get("name", CONTAINER))
            for source in raw.get("containers", ())
        ),
        inherits=tuple(map(parse_path, raw.get("inherits", ()))),
    )
