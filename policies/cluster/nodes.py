# SPDX-License-Identifier: Apache-2.0
"""Nodes as values: what of them decides where pods may go. What runs on them must not be here."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from policies.cluster.reading import mapping, mappings, offered, text


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint as Kubernetes writes it; an empty value is none."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Node:
    """A node as its watch last showed it.

    `allocatable` is in base units: milli-CPU, bytes of memory and ephemeral storage, counts of
    pods and devices. `version` (resourceVersion) makes no difference: heartbeats change it.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Mapping[str, int]
    ready: bool = True
    unschedulable: bool = False
    version: str = field(default="", compare=False)


def read_node(raw: Mapping[str, object]) -> Node:
    """Return the view of a raw Node; it never raises, and parts that many nodes have are shared."""
    metadata, spec, status = (mapping(raw, part) for part in ("metadata", "spec", "status"))
    return Node(
        name=sys.intern(text(metadata, "name")),
        labels=_labels(mapping(metadata, "labels")),
        taints=_taints(spec),
        allocatable=_shared_amounts(tuple(sorted(offered(mapping(status, "allocatable")).items()))),
        ready=_is_ready(status),
        unschedulable=spec.get("unschedulable") is True,
        version=text(metadata, "resourceVersion"),
    )


def _labels(raw: Mapping[str, object]) -> Mapping[str, str]:
    return {
        sys.intern(key): sys.intern(value) for key, value in raw.items() if isinstance(value, str)
    }


def _taints(spec: Mapping[str, object]) -> tuple[Taint, ...]:
    return tuple(
        _shared_taint(text(raw, "key"), text(raw, "value"), text(raw, "effect"))
        for raw in mappings(spec, "taints")
    )


def _is_ready(status: Mapping[str, object]) -> bool:
    """Tell what the Ready condition says; a node without one is judged by its taints.

    The API server taints new nodes as not ready, so that one that has said nothing takes no pods.
    """
    stated = [
        condition.get("status")
        for condition in mappings(status, "conditions")
        if condition.get("type") == "Ready"
    ]
    return all(value == "True" for value in stated)


@lru_cache(maxsize=1024)  # nodes of a kind have the same few
def _shared_taint(key: str, value: str, effect: str) -> Taint:
    return Taint(key, value, effect)


@lru_cache(maxsize=1024)  # likewise
def _shared_amounts(pairs: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    return {sys.intern(name): amount for name, amount in pairs}
