# SPDX-License-Identifier: Apache-2.0
"""The one normaliser: what any pod (from the API server, a template or a file) asks of GPUs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at, string_at, strings_at
from policies.vendors import Catalog, GpuName

MAX_CONTAINERS = 500


class ContainerKind(StrEnum):
    """The kinds of containers, which Kubernetes counts differently."""

    INIT = "Init"
    SIDECAR = "Sidecar"
    APP = "App"
    EPHEMERAL = "Ephemeral"


@dataclass(frozen=True, slots=True)
class GpuAmount:
    """A GPU-like resource of one container as written; None where a map lacks it.

    A limit alone is the request too, as the API server defaults it.
    """

    name: GpuName
    limit: object | None
    request: object | None


@dataclass(frozen=True, slots=True)
class Container:
    """A container, where it stands in the pod, and its GPU amounts in name order."""

    section: str
    index: int
    kind: ContainerKind
    name: str
    raw: JsonObject
    gpus: tuple[GpuAmount, ...]

    @property
    def key(self) -> str:
        """Return the container's name, which is unique over all sections of a pod."""
        return self.name


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod's parts that decisions need; `raw` is what it was read from."""

    raw: JsonObject
    metadata: JsonObject
    spec: JsonObject
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    containers: tuple[Container, ...]

    @property
    def asks_gpus(self) -> bool:
        """Tell whether any container names a GPU-like resource, be it of count 0."""
        return any(container.gpus for container in self.containers)

    @property
    def owner_kind(self) -> str:
        """Return the kind of the controller that made the pod; empty if none did."""
        return string_at(self._owner, "kind")

    @property
    def _owner(self) -> JsonObject:
        owners = objects_at(self.metadata, "ownerReferences")
        return next((owner for owner in owners if owner.get("controller") is True), {})


def read_pod(raw: JsonObject, catalog: Catalog) -> PodView:
    """Read a pod. Raises MalformedError."""
    metadata, spec = object_at(raw, "metadata"), object_at(raw, "spec")
    return PodView(
        raw=raw,
        metadata=metadata,
        spec=spec,
        labels=strings_at(metadata, "labels"),
        annotations=strings_at(metadata, "annotations"),
        containers=tuple(
            _container(section, index, container, catalog)
            for section in ("initContainers", "containers", "ephemeralContainers")
            for index, container in enumerate(objects_at(spec, section))
        ),
    )


def count_containers(raw: JsonObject) -> int:
    """Return how many containers a pod has, without looking into any. Raises MalformedError."""
    spec = object_at(raw, "spec")
    sections = ("initContainers", "containers", "ephemeralContainers")
    return sum(len(objects_at(spec, section)) for section in sections)


def _container(section: str, index: int, raw: JsonObject, catalog: Catalog) -> Container:
    return Container(
        section=section,
        index=index,
        kind=_kind(section, raw),
        name=string_at(raw, "name"),
        raw=raw,
        gpus=read_amounts(object_at(raw, "resources"), catalog),
    )


def _kind(section: str, raw: JsonObject) -> ContainerKind:
    match section:
        case "containers":
            return ContainerKind.APP
        case "ephemeralContainers":
            return ContainerKind.EPHEMERAL
        case _:
            always = raw.get("restartPolicy") == "Always"
            return ContainerKind.SIDECAR if always else ContainerKind.INIT


def read_amounts(resources: JsonObject, catalog: Catalog) -> tuple[GpuAmount, ...]:
    """Return the GPU-like amounts of a container's `resources`, by name."""
    limits, requests = object_at(resources, "limits"), object_at(resources, "requests")
    classify = catalog.classify
    names = [name for name in limits if classify(name) is not None]
    names += [name for name in requests if name not in limits and classify(name) is not None]
    if not names:
        return ()
    found = ((classify(name), name) for name in sorted(names))
    return tuple(GpuAmount(gpu, limits.get(name), requests.get(name)) for gpu, name in found if gpu)
