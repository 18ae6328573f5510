# SPDX-License-Identifier: Apache-2.0
"""From units that are to go to pods with their reasons: for whom, by which rule, to what effect."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from policies.model.reclaim import ReclaimPolicy
from policies.quota.amount import Amount
from policies.quota.reclaim.board import Board
from policies.quota.reclaim.books import Books
from policies.quota.reclaim.emission import Victim
from policies.quota.reclaim.outcome import Beneficiary, Change, Reservation, Why
from policies.quota.reclaim.snapshot import EntitlementKey, Group, Snapshot
from policies.quota.reclaim.units import Piece

_DEFAULTS: Final = "defaults"
"""What stands for the name of a policy that no document has written."""


def rule_of(policy: ReclaimPolicy) -> str:
    """Return the rule as notices, Events and the audit log name it."""
    return f"ReclaimPolicy/{policy.name or _DEFAULTS}"


def victims_of(board: Board, met: Sequence[Group], books: Books) -> Iterator[Victim]:
    """Yield the pods that are to go, group by group. `books` are those before the plan."""
    blocked = _blocked(board)
    chosen: dict[str, list[Piece]] = {}
    for choice in board.choices:
        chosen.setdefault(choice.group, []).extend(choice.pieces)
    for group in met:
        before = {pool: books.used((group.tenant, pool)) for pool in group.amounts()}
        books.grant(group)
        beneficiary = _beneficiary(group)
        for piece in chosen.get(group.key, ()):
            _, pool = piece.key
            getter = _change(books, (group.tenant, pool), before.get(pool, Amount()))
            used = books.used(piece.key)
            books.remove(piece.key, piece.amount)
            why = Why(
                beneficiary=beneficiary,
                rule=rule_of(books.entitlements[piece.key].policy),
                getter=getter,
                giver=_change(books, piece.key, used),
                node=piece.node,
                generation=board.snapshot.generation,
                at=board.snapshot.now,
            )
            yield Victim(piece, group.key, why, piece.pod.uid in blocked)


def reservations_of(
    board: Board, met: Iterable[Group], victims: Iterable[Victim]
) -> Iterator[Reservation]:
    """Yield the room that is kept for each group that gets some."""
    places: dict[str, dict[str, str]] = {}
    for place in board.places:
        places.setdefault(place.group, {})[place.member.pod.uid] = place.node
    gone: dict[str, list[str]] = {}
    for victim in victims:
        gone.setdefault(victim.group, []).append(victim.pod.uid)
    for group in met:
        uids = tuple(gone.get(group.key, ()))
        yield Reservation(
            group=group.name,
            tenant=group.tenant,
            places=places.get(group.key, {}),
            milli={pool: amount.milli for pool, amount in group.amounts().items()},
            victims=uids,
        )


def _beneficiary(group: Group) -> Beneficiary:
    return Beneficiary(
        name=group.name,
        tenant=group.tenant,
        uids=tuple(member.pod.uid for member in group.members),
        milli=sum(amount.milli for amount in group.amounts().values()),
        is_gang=group.is_gang,
    )


def _change(books: Books, key: EntitlementKey, before: Amount) -> Change:
    entitlement = books.entitlements.get(key)
    return Change(
        tenant=key[0],
        pool=key[1],
        guarantee_milli=entitlement.guarantee_milli if entitlement is not None else 0,
        before_milli=before.milli,
        after_milli=books.used(key).milli,
    )


def _blocked(board: Board) -> frozenset[str]:
    """Return the chosen pods that disruption budgets would refuse, as far as was seen."""
    snapshot: Snapshot = board.snapshot
    found: set[str] = set()
    asked: dict[tuple[str, str], int] = {}
    for piece in (piece for choice in board.choices for piece in choice.pieces):
        if snapshot.refused.get(piece.pod.uid, 0) > snapshot.now or len(piece.pdbs) > 1:
            found.add(piece.pod.uid)
        for pdb in piece.pdbs:
            key = (pdb.namespace, pdb.name)
            asked[key] = asked.get(key, 0) + 1
            if asked[key] > pdb.disruptions_allowed:
                found.add(piece.pod.uid)
    return frozenset(found)
