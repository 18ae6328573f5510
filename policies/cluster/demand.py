# SPDX-License-Identifier: Apache-2.0
"""What a pod takes from its node, all resources of it, as kube-scheduler counts.

Source: kubernetes component-helpers resource/helpers.go PodRequests. While a pod is being resized
(KEP-1287), the larger of what is written, granted and in force counts. What devices cost a tenant
must not be here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from policies.cluster.reading import PODS, asked, mapping, mappings, text
from policies.pod.effective import effective
from policies.pod.view import ContainerKind

Raw: TypeAlias = Mapping[str, object]

_POD_LEVEL: Final = ("cpu", "memory")
_RESIZABLE: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"


def read_requests(pod: Raw) -> Mapping[str, int]:
    """Return a raw pod's effective request in base units (milli-CPU, bytes, counts), one pod too.

    It never raises: an amount that cannot be read is more than any node has.
    """
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    found = _aggregate(spec, _written)
    if "resources" in spec:
        found.update(_of_the_pod(spec, found))
    if status:
        resized = _resized(spec, status)
        found.update(resized if _is_infeasible(status) else _larger(found, resized))
    for name, amount in asked(mapping(spec, "overhead")).items():
        found[name] = found.get(name, 0) + amount
    found[PODS] = 1
    return {name: amount for name, amount in found.items() if amount}


def _aggregate(spec: Raw, requests_of: Callable[[Raw], Mapping[str, int]]) -> dict[str, int]:
    if spec.get("initContainers"):
        return effective((kind, requests_of(container)) for kind, container in _containers(spec))
    # Most pods have none, and then it is a sum.
    found: dict[str, int] = {}
    for container in mappings(spec, "containers"):
        for name, amount in requests_of(container).items():
            found[name] = found.get(name, 0) + amount
    return found


def _containers(spec: Raw) -> Iterator[tuple[ContainerKind, Raw]]:
    """Yield containers in the order in which they start."""
    for container in mappings(spec, "initContainers"):
        always = container.get("restartPolicy") == "Always"
        yield (ContainerKind.SIDECAR if always else ContainerKind.INIT), container
    for container in mappings(spec, "containers"):
        yield ContainerKind.APP, container


def _written(container: Raw) -> Mapping[str, int]:
    """Return a container's requests; a limit alone is the request too."""
    requests = mapping(container, "resources", "requests")
    limits = mapping(container, "resources", "limits")
    if not limits or limits.keys() <= requests.keys():
        return asked(requests)
    return asked({**limits, **requests})


def _of_the_pod(spec: Raw, containers: Mapping[str, int]) -> Mapping[str, int]:
    """Return requests of the pod as a whole (KEP-2837), which hold instead of the containers'.

    A limit alone is the request only of what no container asks.
    """
    requests = asked(mapping(spec, "resources", "requests"))
    limits = asked(mapping(spec, "resources", "limits"))
    found = {name: amount for name, amount in limits.items() if name not in containers}
    return {name: amount for name, amount in {**found, **requests}.items() if _is_pod_level(name)}


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _resized(spec: Raw, status: Raw) -> Mapping[str, int]:
    """Return CPU and memory that are granted or in force, where that is not what is written."""
    statuses = {
        text(raw, "name"): raw
        for section in ("containerStatuses", "initContainerStatuses")
        for raw in mappings(status, section)
    }
    found: Mapping[str, int] = {}
    if any(_is_resized(raw, statuses) for _, raw in _containers(spec)):
        found = _larger(
            _aggregate(spec, lambda raw: _granted(raw, statuses)),
            _aggregate(spec, lambda raw: _in_force(raw, statuses)),
        )
    whole = asked(mapping(spec, "resources", "requests"))
    if whole:
        # The pod's own requests hold instead of what its containers add up to.
        found = {n: a for n, a in found.items() if n not in whole} | _of_the_pods_status(
            spec, status
        )
    return {name: found[name] for name in _RESIZABLE if name in found}


def _of_the_pods_status(spec: Raw, status: Raw) -> dict[str, int]:
    granted = asked(mapping(status, "allocatedResources"))
    in_force = asked(mapping(status, "resources", "requests"))
    overhead = asked(mapping(spec, "overhead"))
    both = _larger(granted, in_force)
    # What the kubelet writes of the whole pod includes the overhead.
    return {name: max(0, amount - overhead.get(name, 0)) for name, amount in both.items()}


def _is_resized(container: Raw, statuses: Mapping[str, Raw]) -> bool:
    """Tell whether a container's status says anything other than its spec; most say the same."""
    found = statuses.get(text(container, "name"))
    if found is None:
        return False
    written = mapping(container, "resources", "requests")
    granted, in_force = (
        mapping(found, "allocatedResources"),
        mapping(found, "resources", "requests"),
    )
    return any(amounts and amounts != written for amounts in (granted, in_force))


def _granted(container: Raw, statuses: Mapping[str, Raw]) -> Mapping[str, int]:
    found = statuses.get(text(container, "name"), {})
    granted = mapping(found, "allocatedResources")
    return asked(granted) if granted else _written(container)


def _in_force(container: Raw, statuses: Mapping[str, Raw]) -> Mapping[str, int]:
    found = statuses.get(text(container, "name"), {})
    in_force = mapping(found, "resources", "requests")
    return asked(in_force) if in_force else _granted(container, statuses)


def _is_infeasible(status: Raw) -> bool:
    """Tell whether the node has said that it cannot grant what is written."""
    return any(
        text(condition, "type") == "PodResizePending" and text(condition, "reason") == "Infeasible"
        for condition in mappings(status, "conditions")
    )


def _larger(left: Mapping[str, int], right: Mapping[str, int]) -> Mapping[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {**left, **right}}
