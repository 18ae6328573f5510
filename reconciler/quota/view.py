# SPDX-License-Identifier: Apache-2.0
"""From raw pods to what the quota controller keeps of them: little, and much of it shared.

Pure; never raises, whatever is in a pod. Pods that neither take GPUs nor carry Sluice's gate are
kept for the room that they take on nodes.
"""

import sys
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Final, Generic, TypeAlias, TypeVar

from policies.model.keys import (
    CHARGE,
    GANG_LABEL,
    GANG_SIZE,
    MIRROR_ANNOTATION,
    NOTICE,
    QUOTA_GATE,
    REASON,
)
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord, read_charge
from policies.quota.gang_size import read_gang_size
from policies.quota.notice import read_notice
from policies.quota.pods import Gang, Phase, QuotaPod
from policies.quota.reclaimable import asks_not_to_be_disrupted, eviction_cost
from policies.vendors import Catalog, build_catalog
from reconciler.kube import raw
from reconciler.quota.shapes import ShapeTable

Raw: TypeAlias = Mapping[str, object]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ENDED: Final = ("Succeeded", "Failed")
_NO_STRINGS: Final[Mapping[str, str]] = {}
_END_OF_TIME: Final = 253402300799
"""The last second of the year 9999, for what ends at a time that cannot be read."""


class _Shared(Generic[K, V]):
    """Makes equal values one object; when full it forgets all, and equal ones may be two."""

    def __init__(self, size: int = 8192) -> None:
        self._size = size
        self._known: dict[K, V] = {}

    def of(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made where it is not known."""
        found = self._known.get(key)
        if found is None:
            found = make()
            if len(self._known) >= self._size:
                self._known.clear()
            self._known[key] = found
        return found


class PodViews:
    """Makes views of pods: one for all of them, since they share parts."""

    def __init__(self, catalog: Catalog | None = None) -> None:
        self._shapes = ShapeTable(catalog or build_catalog())
        self._labels: _Shared[tuple[tuple[str, str], ...], Mapping[str, str]] = _Shared()
        self._amounts: _Shared[Hashable, Amount] = _Shared()
        self._gangs: _Shared[Gang, Gang] = _Shared()
        self._charges: _Shared[str, ChargeRecord | None] = _Shared(1024)

    @property
    def shapes(self) -> int:
        """Return how many shapes are known."""
        return len(self._shapes)

    def view(self, item: Raw) -> QuotaPod | None:
        """Return the view of a raw pod; None of one that has ended and took no GPU."""
        spec = raw.mapping(item, "spec")
        phase = _phase(item, spec)
        whole = phase in (Phase.WAITING, Phase.HELD) or self._shapes.asks_gpus(item)
        if not whole:
            return None if phase is Phase.ENDED else self._in_the_way(item, spec)
        return self._counted(item, spec, phase)

    def _in_the_way(self, item: Raw, spec: Raw) -> QuotaPod:
        """Return the view of a pod that only takes room on its node."""
        metadata = raw.mapping(item, "metadata")
        return QuotaPod(
            namespace=sys.intern(raw.text(metadata, "namespace")),
            name=raw.text(metadata, "name"),
            uid=raw.text(metadata, "uid"),
            version=raw.text(metadata, "resourceVersion"),
            created_at=_seconds(metadata.get("creationTimestamp")) or 0,
            phase=Phase.LIVE,
            shape=self._shapes.shape_of(item, whole=False),
            priority=_priority(spec),
            node=sys.intern(raw.text(spec, "nodeName")),
            deleted_at=_deleted_at(metadata),
        )

    def _counted(self, item: Raw, spec: Raw, phase: Phase) -> QuotaPod:
        """Return the view of a pod that takes GPUs or has our gate."""
        metadata = raw.mapping(item, "metadata")
        annotations = raw.strings(metadata, "annotations")
        labels = self._labels_of(metadata)
        owner, owner_uid = _owner(metadata)
        return QuotaPod(
            namespace=sys.intern(raw.text(metadata, "namespace")),
            name=raw.text(metadata, "name"),
            uid=raw.text(metadata, "uid"),
            version=raw.text(metadata, "resourceVersion"),
            created_at=_seconds(metadata.get("creationTimestamp")) or 0,
            phase=phase,
            shape=self._shapes.shape_of(item, whole=True),
            priority=_priority(spec),
            node=sys.intern(raw.text(spec, "nodeName")),
            deleted_at=_deleted_at(metadata),
            charge=self._charge(annotations.get(CHARGE)),
            gang=self._gang(labels, annotations, spec),
            owner=owner,
            owner_uid=owner_uid,
            notice=read_notice(annotations.get(NOTICE)),
            reason=sys.intern(annotations.get(REASON, "")),
            mirror=bool(annotations.get(MIRROR_ANNOTATION)),
            labels=labels,
            eviction_cost=eviction_cost(annotations),
            do_not_disrupt=asks_not_to_be_disrupted(annotations),
        )

    def _labels_of(self, metadata: Raw) -> Mapping[str, str]:
        found = raw.strings(metadata, "labels")
        return self._labels.of(tuple(found.items()), lambda: found) if found else _NO_STRINGS

    def _charge(self, text: str | None) -> ChargeRecord | None:
        if not text:
            return None
        return self._charges.of(text, lambda: self._read_charge(text))

    def _read_charge(self, text: str) -> ChargeRecord | None:
        record = read_charge(text)
        if record is None:
            return None
        amount = record.amount
        key = (tuple(amount.parts.items()), amount.mib, tuple(amount.counts.items()))
        return ChargeRecord(
            tenant=sys.intern(record.tenant),
            pool=sys.intern(record.pool),
            amount=self._amounts.of(key, lambda: amount),
            generation=sys.intern(record.generation),
            at=record.at,
            exclusive=record.exclusive,
            reclaimable=record.reclaimable,
            borrowed=record.borrowed,
        )

    def _gang(
        self, labels: Mapping[str, str], annotations: Mapping[str, str], spec: Raw
    ) -> Gang | None:
        """Return the gang of our label, else of upstream's (core/v1 PodSchedulingGroup, 1.36)."""
        if name := labels.get(GANG_LABEL):
            gang = Gang(name, read_gang_size(annotations.get(GANG_SIZE, "")))
        elif group := raw.text(raw.mapping(spec, "schedulingGroup"), "podGroupName"):
            gang = Gang(group, None, is_pod_group=True)
        else:
            return None
        return self._gangs.of(gang, lambda: gang)


def _phase(item: Raw, spec: Raw) -> Phase:
    if raw.text(raw.mapping(item, "status"), "phase") in _ENDED:
        return Phase.ENDED
    gates = [raw.text(gate, "name") for gate in raw.mappings(spec, "schedulingGates")]
    if QUOTA_GATE not in gates:
        return Phase.LIVE
    return Phase.WAITING if len(gates) == 1 else Phase.HELD


def _owner(metadata: Raw) -> tuple[str, str]:
    """Return the controller as `Kind/name`, and its uid; empty for a bare pod."""
    for owner in raw.mappings(metadata, "ownerReferences"):
        if owner.get("controller") is True:
            name = f"{raw.text(owner, 'kind')}/{raw.text(owner, 'name')}"
            return sys.intern(name), sys.intern(raw.text(owner, "uid"))
    return "", ""


def _priority(spec: Raw) -> int:
    priority = spec.get("priority")
    return priority if type(priority) is int else 0


def _deleted_at(metadata: Raw) -> int | None:
    """Return when a pod's grace ends; an unreadable time is one all the same."""
    at = metadata.get("deletionTimestamp")
    if not at:
        return None
    seconds = _seconds(at)
    return _END_OF_TIME if seconds is None else seconds


def _seconds(at: object) -> int | None:
    """Return Unix seconds of a time as the API writes it (RFC 3339); None for what is none."""
    if not isinstance(at, str):
        return None
    try:
        moment = datetime.fromisoformat(at)
        return int(moment.timestamp()) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
