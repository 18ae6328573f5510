# SPDX-License-Identifier: Apache-2.0
"""What placement keeps of a pod: what it asks, where it is, and what kind of work it does.

Pure; a stored pod never raises, whatever is in it. What cannot be understood reads as absent, but
amounts, which then fit nowhere.
"""

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Final, TypeAlias

import orjson

from policies.admission.companions import is_own_term
from policies.cluster.constraints import read_constraints
from policies.cluster.demand import read_requests
from policies.cluster.reading import mapping, mappings, text
from policies.cluster.shape import FitShape
from policies.model.keys import COHORT_LABEL, DECISION, GPU_MEMORY, TENANT_LABEL, WORK_LABEL
from policies.placement.asks import Ask
from policies.placement.stating import LIMITS, stated_mib
from policies.rewrite.claim import read_claim
from policies.vendors import Catalog, Form
from policies.vendors.nvidia import STRATEGY_LABEL

Raw: TypeAlias = Mapping[str, object]

_SPEC: Final = ("affinity", "nodeSelector", "tolerations", "overhead", "resources")
_SECTIONS: Final = ("initContainers", "containers")
_STATUSES: Final = ("containerStatuses", "initContainerStatuses")
_RESIZED: Final = ("allocatedResources", "resources")
_ENDED: Final = ("Succeeded", "Failed")
_SERVING: Final = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController", "RayService"})
_MAX_KNOWN: Final = 8192


class Work(StrEnum):
    """What a pod does: it answers somebody, or it computes towards an end."""

    INFERENCE = "inference"
    TRAINING = "training"


@dataclass(frozen=True, slots=True)
class Company:
    """Whose a pod is in forms without a wall, and whom it lets sit beside it.

    `walls` are the labels of which neighbours must have the same value.
    """

    tenant: str = ""
    cohort: str = ""
    walls: frozenset[str] = frozenset()

    def bears(self, other: "Company") -> bool:
        """Tell whether the other may sit on the same node; one without a tenant is nobody's."""
        if not other.tenant:
            return True
        return all(
            self.cohort == other.cohort if wall == COHORT_LABEL else self.tenant == other.tenant
            for wall in self.walls
        )


NOBODY: Final = Company()


@dataclass(frozen=True, slots=True)
class Wish:
    """All of a pod that decides where it may go; pods that are alike have equal ones.

    `is_exclusive`: nobody may sit on its cards. `forms` are those of the devices that it asks.
    `ranked` is what ranks are made by, for which stated memory makes no difference.
    """

    ask: Ask
    is_exclusive: bool = False
    company: Company = NOBODY
    forms: frozenset[Form] = frozenset()
    ranked: Ask = field(init=False, repr=False, compare=False)
    sifted: Hashable = field(init=False, repr=False, compare=False)
    """Equal for pods that the same nodes must not get."""

    def __post_init__(self) -> None:
        plain = tuple(replace(device, mib=None) for device in self.ask.devices)
        ranked = self.ask if plain == self.ask.devices else replace(self.ask, devices=plain)
        object.__setattr__(self, "ranked", ranked)
        key = (self.ask.devices, self.is_exclusive, self.company, self.forms)
        object.__setattr__(self, "sifted", key)


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod as its watch last showed it; `node` is empty before it is bound.

    `service` is the UID of its controller, empty for a bare pod. `created_at` is in Unix seconds, 0
    where it is not told.
    """

    namespace: str
    name: str
    uid: str
    node: str
    wish: Wish
    has_ended: bool = False
    work: Work = Work.TRAINING
    service: str = ""
    created_at: float = 0.0

    @property
    def is_protected(self) -> bool:
        """Tell whether it may never be taken off its node: exclusive training."""
        return self.work is Work.TRAINING and (
            self.wish.is_exclusive or Form.WHOLE in self.wish.forms
        )


class PodReader:
    """Reads raw pods; equal wishes are one object, since thousands of pods are alike."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._by_digest: dict[bytes, Wish] = {}
        self._known: dict[Wish, Wish] = {}

    def read(self, pod: Raw) -> PlacedPod:
        """Return the view of a raw pod."""
        metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
        owner = _owner(metadata)
        return PlacedPod(
            namespace=sys.intern(text(metadata, "namespace")),
            name=text(metadata, "name"),
            uid=text(metadata, "uid"),
            node=sys.intern(text(spec, "nodeName")),
            wish=self._found(_parts(pod)),
            has_ended=text(mapping(pod, "status"), "phase") in _ENDED,
            work=_work(metadata, text(owner, "kind")),
            service=sys.intern(text(owner, "uid")),
            created_at=_seconds(text(metadata, "creationTimestamp")),
        )

    def _found(self, parts: Raw) -> Wish:
        """Return the wish of a pod's parts, found by what they are: it is read but once."""
        try:
            digest = blake2b(orjson.dumps(parts), digest_size=16).digest()
        except TypeError:  # a number that the API cannot hold
            return self._wish(parts)
        wish = self._by_digest.get(digest)
        if wish is None:
            if len(self._by_digest) >= _MAX_KNOWN:
                self._by_digest.clear()
            wish = self._by_digest[digest] = self._shared(self._wish(parts))
        return wish

    def _wish(self, pod: Raw) -> Wish:
        metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
        ask = Ask.of(FitShape.of(read_requests(pod), read_constraints(spec)), self._catalog)
        if not ask.devices:
            # Where it may go is nobody's question here: it only takes room.
            return Wish(Ask((), ask.amounts))
        mib = stated_mib(pod)
        devices = tuple(replace(device, mib=mib) for device in ask.devices)
        names = (self._catalog.classify(device.resource) for device in devices)
        return Wish(
            ask=replace(ask, devices=devices),
            is_exclusive=_is_exclusive(metadata, ask),
            company=_company(metadata, spec),
            forms=frozenset(name.form for name in names if name is not None),
        )

    def _shared(self, wish: Wish) -> Wish:
        found = self._known.get(wish)
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._known[wish] = wish
        return found


def _parts(pod: Raw) -> Raw:
    """Return a pod with nothing but what its wish is read from."""
    metadata, spec, status = (mapping(pod, part) for part in ("metadata", "spec", "status"))
    labels, annotations = mapping(metadata, "labels"), mapping(metadata, "annotations")
    kept: dict[str, object] = {field: spec[field] for field in _SPEC if field in spec}
    for section in _SECTIONS:
        kept[section] = [_container(raw) for raw in mappings(spec, section)]
    resized: dict[str, object] = {field: status[field] for field in _RESIZED if field in status}
    for section in _STATUSES:
        found = [_chosen(raw, ("name", *_RESIZED)) for raw in mappings(status, section)]
        resized[section] = [each for each in found if len(each) > 1]
    resized["conditions"] = [
        _chosen(raw, ("type", "reason"))
        for raw in mappings(status, "conditions")
        if text(raw, "type").startswith("PodResize")
    ]
    return {
        "metadata": {
            "labels": _chosen(labels, (TENANT_LABEL, COHORT_LABEL)),
            "annotations": _chosen(annotations, (GPU_MEMORY, DECISION)),
        },
        "spec": kept,
        "status": resized,
    }


def _container(raw: Raw) -> dict[str, object]:
    found = _chosen(raw, ("name", "resources", "restartPolicy"))
    limits = [each for each in mappings(raw, "env") if each.get("name") in LIMITS]
    return {**found, "env": limits} if limits else found


def _chosen(raw: Raw, fields: tuple[str, ...]) -> dict[str, object]:
    return {field: raw[field] for field in fields if field in raw}


def _is_exclusive(metadata: Raw, ask: Ask) -> bool:
    """Tell whether a pod's cards are its own: by its decision, or because it demands such nodes."""
    claim = read_claim(text(mapping(metadata, "annotations"), DECISION) or None)
    if claim is not None and claim.exclusive:
        return True
    return dict(ask.constraints.node_selector).get(STRATEGY_LABEL) == "none"


def _company(metadata: Raw, spec: Raw) -> Company:
    labels = mapping(metadata, "labels")
    tenant = text(labels, TENANT_LABEL)
    if not tenant:
        return NOBODY
    required = mappings(
        mapping(spec, "affinity", "podAntiAffinity"),
        "requiredDuringSchedulingIgnoredDuringExecution",
    )
    walls = {_wall(term) for term in required if is_own_term(dict(term))}
    return Company(tenant, text(labels, COHORT_LABEL), frozenset(walls))


def _wall(term: Raw) -> str:
    """Return the label that an anti-affinity term of Sluice demands to be the same."""
    expressions = mappings(mapping(term, "labelSelector"), "matchExpressions")
    return next(
        (text(each, "key") for each in expressions if each.get("operator") == "NotIn"), TENANT_LABEL
    )


def _owner(metadata: Raw) -> Raw:
    owners = mappings(metadata, "ownerReferences")
    return next((owner for owner in owners if owner.get("controller") is True), {})


def _work(metadata: Raw, owner_kind: str) -> Work:
    said = text(mapping(metadata, "labels"), WORK_LABEL)
    if said in tuple(Work):
        return Work(said)
    return Work.INFERENCE if owner_kind in _SERVING else Work.TRAINING


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp() if time else 0.0
    except (ValueError, OverflowError):
        return 0.0
