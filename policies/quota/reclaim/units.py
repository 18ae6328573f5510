# SPDX-License-Identifier: Apache-2.0
"""What may be taken back, in the pieces in which it may: single pods, and gangs as a whole.

A gang with more pods than it declares gives its surplus one by one; one pod less than it declares
would leave the rest useless. Who gives first among equals is decided here; for whom and how much
is not.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from policies.model.reclaim import ReclaimPolicy
from policies.quota.amount import Amount, total
from policies.quota.gangs import GangKey, gang_key
from policies.quota.pdb import PodDisruptionBudget, covering
from policies.quota.pods import Phase, QuotaPod
from policies.quota.reclaim.snapshot import Entitlement, EntitlementKey, Held, Snapshot

_SURPLUS: Final = 0
_NEEDED: Final = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A pod that may go: what it is charged, to whom, and which node it takes from."""

    pod: QuotaPod
    key: EntitlementKey
    amount: Amount
    node: str
    pdbs: tuple[PodDisruptionBudget, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Pieces that go together or not at all. `gang` is empty for a pod of none.

    `order` puts units of one tenant in the order in which they go: the surplus of gangs, low
    priority, low cost, the youngest, the UID. `is_told` says that all of them have a notice.
    """

    pieces: tuple[Piece, ...]
    order: tuple[int, int, int, int, str]
    is_told: bool
    is_refused: bool
    gang: GangKey | None = None
    is_surplus: bool = False


def released_at(pod: QuotaPod) -> int:
    """Return since when a pod has what it holds: its release, or its creation if it had none."""
    return pod.charge.at if pod.charge is not None else pod.created_at


def is_ending(pod: QuotaPod, snapshot: Snapshot) -> bool:
    """Tell whether a pod is being deleted, or was asked to end."""
    return pod.deleted_at is not None or pod.uid in snapshot.going


def may_go(pod: QuotaPod, amount: Amount, entitlement: Entitlement, now: int) -> bool:
    """Tell whether a pod may be taken back at all, once its notice is over."""
    at = may_go_at(pod, amount, entitlement)
    return at is not None and at <= now


def may_go_at(pod: QuotaPod, amount: Amount, entitlement: Entitlement) -> int | None:
    """Return from when on a pod may be chosen, None for never.

    From then its minimum runtime is over when its notice is. What its charge says holds: an
    owner's later wishes do not keep what was lent.
    """
    if pod.phase is not Phase.LIVE or pod.mirror or not amount.milli:
        return None
    if pod.owner.startswith("DaemonSet/"):
        return None  # made again on the same node at once: nothing would be freed
    if pod.shape.exclusive or not entitlement.policy.enabled:
        return None
    charge = pod.charge
    if charge is not None and (charge.exclusive or not charge.reclaimable):
        return None
    if charge is None and (
        pod.do_not_disrupt or pod.shape.grace_seconds > entitlement.policy.max_grace_seconds
    ):
        return None
    runs_until = released_at(pod) + entitlement.min_runtime_seconds
    if pod.notice is None:
        return runs_until - entitlement.policy.notice_seconds
    return 0 if runs_until <= pod.notice.evict_at else runs_until


@dataclass(slots=True)
class _GangSeen:
    """A gang as far as it was seen: how many live pods it has, and which of them may go."""

    live: int = 0
    pieces: list[Piece] = field(default_factory=list)


class _Known(NamedTuple):
    """A unit of one pod, what it was made from, and when the pod may go at the earliest."""

    held: Held
    terms: "Terms"
    pdbs: tuple[PodDisruptionBudget, ...]
    unit: Unit | None
    at: int


Terms: TypeAlias = tuple[EntitlementKey, ReclaimPolicy, int]
"""Of an entitlement, what decides when its pods may go."""


class KnownUnits:
    """Units of single pods from one plan to the next: most pods are as they were."""

    def __init__(self) -> None:
        self._last: dict[str, _Known] = {}
        self._now: dict[str, _Known] = {}
        self._terms: dict[EntitlementKey, Terms] = {}

    def turn(self) -> None:
        """Begin a plan: forget what the last one has not asked for."""
        self._last, self._now = self._now, {}

    def terms(self, entitlement: Entitlement) -> Terms:
        """Return an entitlement's terms, the same object as long as they are the same."""
        found = (entitlement.key, entitlement.policy, entitlement.min_runtime_seconds)
        if self._terms.get(entitlement.key) != found:
            self._terms[entitlement.key] = found
        return self._terms[entitlement.key]

    def held(self, uid: str) -> Held | None:
        """Return what the last plan was told of a pod, to be told of it in the same way."""
        known = self._now.get(uid)
        return None if known is None else known.held

    def of(
        self,
        held: Held,
        entitlement: Entitlement,
        terms: Terms,
        pdbs: tuple[PodDisruptionBudget, ...],
        snapshot: Snapshot,
    ) -> Unit | None:
        """Return the unit of a pod of no gang, None if it may not go now."""
        pod = held.pod
        known = self._last.get(pod.uid)
        if (
            known is None
            or known.held.pod is not pod
            or known.held.amount is not held.amount
            or known.terms is not terms
            or known.pdbs != pdbs
            or not pod.node
            or pod.uid in snapshot.refused
        ):
            at = may_go_at(pod, held.amount, entitlement)
            piece = _piece(held, entitlement.key, snapshot, pdbs) if at is not None else None
            unit = _unit((piece,), snapshot) if piece is not None else None
            known = _Known(held, terms, pdbs, unit, at or 0)
        if pod.node and pod.uid not in snapshot.refused:
            self._now[pod.uid] = known
        return known.unit if known.at <= snapshot.now else None


def units_of(
    snapshot: Snapshot, pools: frozenset[str], known: KnownUnits | None = None
) -> Iterator[Unit]:
    """Yield every unit of a tenant that is over its guarantee in one of these pools."""
    known = KnownUnits() if known is None else known
    known.turn()
    pdbs = _by_namespace(snapshot.pdbs)
    gangs: dict[GangKey, _GangSeen] = {}
    for key, entitlement in snapshot.entitlements.items():
        borrows = entitlement.used.milli > entitlement.guarantee_milli
        asked, terms = borrows and key[1] in pools, known.terms(entitlement)
        for held in snapshot.live.get(key, ()):
            pod = held.pod
            if pod.phase is not Phase.LIVE or is_ending(pod, snapshot):
                continue
            of_gang = gang_key(pod)
            if of_gang is None:
                if asked:
                    covers = pdbs.get(pod.namespace, ())
                    unit = known.of(held, entitlement, terms, covers, snapshot)
                    if unit is not None:
                        yield unit
                continue
            # All of a gang counts, wherever it is: a part alone cannot go.
            seen = gangs.setdefault(of_gang, _GangSeen())
            seen.live += 1
            if borrows and may_go(pod, held.amount, entitlement, snapshot.now):
                seen.pieces.append(_piece(held, key, snapshot, pdbs.get(pod.namespace, ())))
    for gang, seen in gangs.items():
        if any(piece.key[1] in pools for piece in seen.pieces):
            yield from _gang_units(gang, seen, snapshot)


def _gang_units(gang: GangKey, seen: _GangSeen, snapshot: Snapshot) -> Iterator[Unit]:
    singles = sorted(
        (_unit((piece,), snapshot, gang, is_surplus=True) for piece in seen.pieces),
        key=lambda unit: (not unit.is_told, unit.order),
    )
    size = _needed_of(gang, seen, snapshot)
    if size is not None:
        yield from singles[: max(0, seen.live - size)]
    if len(singles) == seen.live:
        yield _unit(tuple(unit.pieces[0] for unit in singles), snapshot, gang)


def _needed_of(gang: GangKey, seen: _GangSeen, snapshot: Snapshot) -> int | None:
    """Return how many pods a gang needs, None where that is not known."""
    if gang.is_pod_group:
        return snapshot.gang_sizes.get(gang)
    sizes = {piece.pod.gang.size for piece in seen.pieces if piece.pod.gang is not None}
    return sizes.pop() if len(sizes) == 1 else None


def _unit(
    pieces: tuple[Piece, ...],
    snapshot: Snapshot,
    gang: GangKey | None = None,
    *,
    is_surplus: bool = False,
) -> Unit:
    if len(pieces) == 1:
        return _single(pieces, pieces[0].pod, snapshot, gang, is_surplus=is_surplus)
    pods = [piece.pod for piece in pieces]
    return Unit(
        pieces=pieces,
        order=(
            _SURPLUS if is_surplus else _NEEDED,
            max(pod.priority for pod in pods),
            max(pod.eviction_cost for pod in pods),
            max(-released_at(pod) for pod in pods),
            pods[0].uid,
        ),
        is_told=all(pod.notice is not None for pod in pods),
        is_refused=any(snapshot.refused.get(pod.uid, 0) > snapshot.now for pod in pods),
        gang=gang,
        is_surplus=is_surplus,
    )


def _single(
    pieces: tuple[Piece, ...],
    pod: QuotaPod,
    snapshot: Snapshot,
    gang: GangKey | None,
    *,
    is_surplus: bool,
) -> Unit:
    return Unit(
        pieces=pieces,
        order=(
            _SURPLUS if is_surplus else _NEEDED,
            pod.priority,
            pod.eviction_cost,
            -released_at(pod),
            pod.uid,
        ),
        is_told=pod.notice is not None,
        is_refused=snapshot.refused.get(pod.uid, 0) > snapshot.now,
        gang=gang,
        is_surplus=is_surplus,
    )


def _piece(
    held: Held, key: EntitlementKey, snapshot: Snapshot, pdbs: tuple[PodDisruptionBudget, ...]
) -> Piece:
    pod = held.pod
    node = pod.node or snapshot.rooms.node_of(pod.uid) or ""
    # The Eviction API lets a pod that is on no node go, whatever its budgets say.
    found = covering(pod.namespace, pod.labels, pdbs) if pod.node else ()
    return Piece(pod, key, held.amount, node, found)


def _by_namespace(
    pdbs: Iterable[PodDisruptionBudget],
) -> Mapping[str, tuple[PodDisruptionBudget, ...]]:
    found: dict[str, tuple[PodDisruptionBudget, ...]] = {}
    for pdb in pdbs:
        found[pdb.namespace] = (*found.get(pdb.namespace, ()), pdb)
    return found


def amounts(pieces: Iterable[Piece]) -> Mapping[EntitlementKey, Amount]:
    """Return what pieces are charged, by entitlement."""
    found: dict[EntitlementKey, list[Amount]] = {}
    for piece in pieces:
        found.setdefault(piece.key, []).append(piece.amount)
    return {key: total(all_) for key, all_ in found.items()}
