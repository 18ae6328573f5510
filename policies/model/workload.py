# SPDX-License-Identifier: Apache-2.0
"""Kinds of workloads: where they keep pod templates, how many pods come of each, who makes them.

Values only: what is known of which kind is data (`policies/workloads/data`) and `Settings`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias


class Wildcard(StrEnum):
    """A step that stands for many: every value of a map, or every item of a list."""

    VALUES = "*"
    ITEMS = "[*]"


Path: TypeAlias = tuple[str | Wildcard, ...]
"""Field names and wildcards, from the root of an object."""


class PodForm(StrEnum):
    """What lies at a template's path."""

    TEMPLATE = "Template"
    """A pod template: `metadata` and `spec`."""
    SPEC = "Spec"
    """The fields of a pod spec, among others."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A number that multiplies the pods: the integer at a path, less some; 1 where there is none.

    Wildcards of the path mean what they mean in the template's own path.
    """

    path: Path
    less: int = 0


@dataclass(frozen=True, slots=True)
class ContainerSource:
    """Containers beside `containers`: one object or a list's items, below the template's path."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """One pod template of a kind.

    `name` tells it from others of its kind; wildcards take theirs from what they stand for.
    `fallback` is read where there is nothing at `path`. `replicas` is None where something else
    decides on the number (nodes, steps of a workflow). `inherits` are objects whose labels,
    annotations and scheduling fields hold where the template has none. `owner` is the kind that
    the pods' controller reference names, `account` the user who creates them, if that is known.
    """

    path: Path
    owner: str
    account: str = ""
    form: PodForm = PodForm.TEMPLATE
    name: str = ""
    fallback: Path | None = None
    replicas: tuple[Factor, ...] | None = ()
    containers: tuple[ContainerSource, ...] = ()
    inherits: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """A kind whose controller makes pods; `versions` are those that webhooks are called for."""

    group: str
    resource: str
    kind: str
    versions: tuple[str, ...]
    templates: tuple[PodTemplate, ...]

    @property
    def is_built_in(self) -> bool:
        """Tell whether it is Kubernetes' own: groups of custom resources have a dot."""
        return "." not in self.group


@dataclass(frozen=True, slots=True)
class PodFields:
    """The names of the fields that a pod's spec and a container have."""

    spec: frozenset[str]
    container: frozenset[str]


@dataclass(frozen=True, slots=True)
class Workloads:
    """Every known kind, in order, and what a pod is made of."""

    kinds: tuple[WorkloadKind, ...]
    fields: PodFields
    _by_resource: dict[tuple[str, str], WorkloadKind] = field(init=False, compare=False, repr=False)
    _by_kind: dict[tuple[str, str], WorkloadKind] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        by_resource = {(kind.group, kind.resource): kind for kind in self.kinds}
        object.__setattr__(self, "_by_resource", by_resource)
        object.__setattr__(self, "_by_kind", {(kind.group, kind.kind): kind for kind in self.kinds})

    def of_resource(self, group: str, resource: str) -> WorkloadKind | None:
        """Return the kind of this plural name, or None if it is no known workload."""
        return self._by_resource.get((group, resource))

    def of_manifest(self, api_version: str, kind: str) -> WorkloadKind | None:
        """Return the kind that a manifest names by its apiVersion and kind, or None."""
        return self._by_kind.get((api_version.rpartition("/")[0], kind))

    def joined(self, own: Iterable[WorkloadKind]) -> "Workloads":
        """Return these with further kinds, which replace those of their names."""
        listed = tuple(own)
        if not listed:
            return self
        names = {name for kind in listed for name in names_of(kind)}
        kept = (kind for kind in self.kinds if names.isdisjoint(names_of(kind)))
        return Workloads((*kept, *listed), self.fields)


def names_of(kind: WorkloadKind) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the two names that are a kind's own: of its resource, and of its objects."""
    return (kind.group, kind.resource), (kind.group, kind.kind)
