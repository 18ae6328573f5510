# SPDX-License-Identifier: Apache-2.0
"""What pods that are alike share: parsed once, found again by a digest of its raw parts.

A shape is read from nothing but the parts that go into its digest. Pure; never raises, whatever is
in a pod.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from math import ceil
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import orjson

from policies.cluster.constraints import Constraints, read_constraints
from policies.cluster.demand import read_requests
from policies.cluster.fit import FitShape
from policies.model.keys import DECISION
from policies.model.quantity import QuantityError, parse_quantity
from policies.pod.asked import MAX_DEVICES, effective_counts
from policies.pod.view import ContainerKind
from policies.quota.pods import Ask, Shape
from policies.rewrite.claim import Claim, read_claim
from policies.vendors import Catalog
from reconciler.kube import raw

Raw: TypeAlias = Mapping[str, object]

_ROOM: Final = ("overhead", "resources")
_WHERE: Final = ("affinity", "nodeSelector", "terminationGracePeriodSeconds", "tolerations")
_SECTIONS: Final = ("initContainers", "containers")
_STATUSES: Final = ("containerStatuses", "initContainerStatuses")
_RESIZED: Final = ("allocatedResources", "resources")
_DEFAULT_GRACE: Final = 30
_NO_CLAIM: Final = Claim(generation="")


class ShapeTable:
    """All shapes in use; what is in no pod is forgotten in time, since digests have a bound."""

    def __init__(self, catalog: Catalog, max_digests: int = 8192) -> None:
        self._catalog = catalog
        self._max_digests = max_digests
        self._by_digest: dict[bytes, Shape] = {}
        self._by_value: WeakValueDictionary[object, Shape] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._by_value)

    def asks_gpus(self, pod: Raw) -> bool:
        """Tell whether any container names a GPU-like resource."""
        classify = self._catalog.classify
        for container in _containers(raw.mapping(pod, "spec")):
            for amounts in raw.mapping(container, "resources").values():
                if isinstance(amounts, Mapping):
                    for name in amounts:
                        if classify(name) is not None:
                            return True
        return False

    def shape_of(self, pod: Raw, *, whole: bool) -> Shape:
        """Return the shape of a raw pod; without `whole` only what it takes from its node."""
        parts = _parts(pod, whole=whole)
        try:
            digest = blake2b(orjson.dumps(parts), digest_size=16).digest()
        except TypeError:  # a number that the API cannot hold
            return self._read(parts)
        shape = self._by_digest.get(digest)
        if shape is None:
            shape = self._read(parts)
            if len(self._by_digest) >= self._max_digests:
                self._by_digest.clear()
            self._by_digest[digest] = shape
        return shape

    def _read(self, parts: Raw) -> Shape:
        spec, claim = raw.mapping(parts, "spec"), read_claim(raw.text(parts, DECISION))
        is_claimed, claim = claim is not None, claim or _NO_CLAIM
        asks = tuple(_asks(spec, claim, self._catalog))
        gpus = effective_counts([(ask.kind, ask.counts) for ask in asks])
        where = read_constraints(spec) if parts["whole"] else Constraints()
        shape = Shape(
            fit=FitShape.of(read_requests(parts), where),
            asks=asks,
            gpus=gpus,
            profiles=tuple(sorted({ask.profile for ask in asks if ask.profile})),
            claimed=is_claimed,
            exclusive=claim.exclusive,
            grace_seconds=_grace(spec),
        )
        return self._by_value.setdefault(_value(shape), shape)


def _value(shape: Shape) -> object:
    asks = tuple((ask.kind, tuple(ask.counts.items()), ask.profile) for ask in shape.asks)
    others = (shape.profiles, shape.claimed, shape.exclusive, shape.grace_seconds)
    return (shape.fit, asks, *others)


def _parts(pod: Raw, *, whole: bool) -> dict[str, object]:
    """Return a pod with nothing but what shapes are read from."""
    spec, status = raw.mapping(pod, "spec"), raw.mapping(pod, "status")
    kept: dict[str, object] = {}
    for field in (*_ROOM, *_WHERE) if whole else _ROOM:
        if field in spec:
            kept[field] = spec[field]
    for section in _SECTIONS:
        kept[section] = [
            {
                "name": container.get("name"),
                "resources": container.get("resources"),
                "restartPolicy": container.get("restartPolicy"),
            }
            for container in raw.mappings(spec, section)
        ]
    parts: dict[str, object] = {"whole": whole, "spec": kept, "status": _resizing(status)}
    if whole:
        parts[DECISION] = raw.text(raw.mapping(pod, "metadata", "annotations"), DECISION)
    return parts


def _resizing(status: Raw) -> dict[str, object]:
    """Return what tells of a resize under way (KEP-1287)."""
    kept: dict[str, object] = {field: status[field] for field in _RESIZED if field in status}
    for section in _STATUSES:
        found = [
            {field: one[field] for field in ("name", *_RESIZED) if field in one}
            for one in raw.mappings(status, section)
            if "resources" in one or "allocatedResources" in one
        ]
        if found:
            kept[section] = found
    conditions = [
        {"type": one["type"], "reason": one.get("reason")}
        for one in raw.mappings(status, "conditions")
        if raw.text(one, "type").startswith("PodResize")
    ]
    if conditions:
        kept["conditions"] = conditions
    return kept


def _containers(spec: Raw) -> Iterator[Raw]:
    for section in _SECTIONS:
        yield from raw.mappings(spec, section)


def _asks(spec: Raw, claim: Claim, catalog: Catalog) -> Iterator[Ask]:
    for section in _SECTIONS:
        for container in raw.mappings(spec, section):
            counts = _gpus(raw.mapping(container, "resources"), catalog)
            if counts:
                name = raw.text(container, "name")
                yield Ask(_kind(section, container), counts, claim.profiles.get(name, ""))


def _gpus(resources: Raw, catalog: Catalog) -> dict[str, int]:
    """Return counts by name; a limit alone is the request too."""
    amounts = {**raw.mapping(resources, "limits"), **raw.mapping(resources, "requests")}
    counts = {name: _count(amounts[name]) for name in sorted(amounts) if catalog.classify(name)}
    return {name: count for name, count in counts.items() if count}


def _count(value: object) -> int:
    """Return a count of devices, bounded; what cannot be read is as many as could be."""
    try:
        return min(max(0, ceil(parse_quantity(value))), MAX_DEVICES)
    except QuantityError:
        return MAX_DEVICES


def _kind(section: str, container: Raw) -> ContainerKind:
    if section == "containers":
        return ContainerKind.APP
    is_sidecar = container.get("restartPolicy") == "Always"
    return ContainerKind.SIDECAR if is_sidecar else ContainerKind.INIT


def _grace(spec: Raw) -> int:
    grace = spec.get("terminationGracePeriodSeconds")
    return max(0, grace) if type(grace) is int else _DEFAULT_GRACE
