# SPDX-License-Identifier: Apache-2.0
"""From who is to go to what is done now: notices, evictions that are due, notices withdrawn.

All who go for one group go together, when the last of them has had its notice; those whom a
disruption budget may keep are tried first, so that nobody ends in vain. A notice is withdrawn only
once passes have found for a while that its pod is not needed: who waits may drop out of one plan of
releases and be in the next, and that must not cost anyone a new notice. Who is to go is not decided
here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policies.model.reclaim import AfterPdbTimeout
from policies.quota.pods import Notice, QuotaPod
from policies.quota.reclaim.limits import Limits, limits_of
from policies.quota.reclaim.outcome import Command, Delete, Evict, Notify, Why, Withdraw
from policies.quota.reclaim.snapshot import Entitlement, Snapshot
from policies.quota.reclaim.units import Piece, released_at

_WITHDRAW_SECONDS: Final = 10
"""For so long a pod with a notice must not have been needed."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that is to go and why. `is_blocked`: a disruption budget may refuse it."""

    piece: Piece
    group: str
    why: Why
    is_blocked: bool

    @property
    def pod(self) -> QuotaPod:
        """Return the pod."""
        return self.piece.pod


def commands(snapshot: Snapshot, victims: Sequence[Victim]) -> Iterator[Command]:
    """Yield what to do now, the earliest chosen first."""
    yield from _withdrawals(snapshot, {victim.pod.uid for victim in victims})
    limits = limits_of(snapshot)
    for together in _by_group(victims).values():
        yield from (_notify(snapshot, v) for v in together if v.pod.notice is None)
        if all(
            victim.pod.notice and due_at(snapshot, victim) <= snapshot.now for victim in together
        ):
            yield from _evictions(snapshot, together, limits)


def due_at(snapshot: Snapshot, victim: Victim) -> int:
    """Return when a victim may go: after its notice, and its tenant's minimum runtime."""
    entitlement = snapshot.entitlements[victim.piece.key]
    notice = victim.pod.notice
    told = snapshot.now + entitlement.policy.notice_seconds if notice is None else notice.evict_at
    return max(told, released_at(victim.pod) + entitlement.min_runtime_seconds)


def next_at(snapshot: Snapshot, victims: Sequence[Victim]) -> int | None:
    """Return when time alone next changes what is to be done."""
    limits = limits_of(snapshot)
    needed = {victim.pod.uid for victim in victims}
    times = [at for _, at in _withdrawn(snapshot, needed)]
    times += [snapshot.refused.get(victim.pod.uid, 0) for victim in victims]
    times += [due_at(snapshot, victim) for victim in victims]
    if victims and limits.eases_at is not None:
        times.append(limits.eases_at)
    return min((at for at in times if at > snapshot.now), default=None)


def _withdrawals(snapshot: Snapshot, needed: set[str]) -> Iterator[Withdraw]:
    return (Withdraw(pod) for pod, at in _withdrawn(snapshot, needed) if at <= snapshot.now)


def _withdrawn(snapshot: Snapshot, needed: set[str]) -> Iterator[tuple[QuotaPod, int]]:
    """Yield the pods with a notice that are not needed, and when to take it off."""
    for holdings in snapshot.live.values():
        for pod, _ in holdings:
            if (
                pod.notice is not None
                and pod.deleted_at is None
                and pod.uid not in needed
                and pod.uid not in snapshot.going
            ):
                since = snapshot.unneeded_since.get(pod.uid, snapshot.now)
                yield pod, since + _WITHDRAW_SECONDS


def _by_group(victims: Iterable[Victim]) -> Mapping[str, list[Victim]]:
    found: dict[str, list[Victim]] = {}
    for victim in victims:
        found.setdefault(victim.group, []).append(victim)
    return found


def _notify(snapshot: Snapshot, victim: Victim) -> Notify:
    notice = Notice(
        beneficiary=victim.why.beneficiary.name,
        rule=victim.why.rule,
        at=snapshot.now,
        evict_at=due_at(snapshot, victim),
    )
    return Notify(victim.pod, notice, victim.why)


def _evictions(snapshot: Snapshot, together: list[Victim], limits: Limits) -> Iterator[Command]:
    """Yield the ends of those who go for one group, as far as the disruption budget has room.

    What fits into the budget as a whole waits until it does; only what never would is spread.
    """
    all_ = [_where(victim) for victim in together]
    if limits.could_ever(all_) and not limits.admits(all_):
        return
    blocked = [victim for victim in together if victim.is_blocked]
    for victim in blocked or together:
        if snapshot.refused.get(victim.pod.uid, 0) > snapshot.now:
            continue
        if limits.admits([_where(victim)]):
            limits.spend([_where(victim)])
            yield _end(snapshot, victim)


def _where(victim: Victim) -> tuple[str, str]:
    return (victim.piece.key[0], victim.piece.node)


def _end(snapshot: Snapshot, victim: Victim) -> Command:
    entitlement = snapshot.entitlements[victim.piece.key]
    notice = victim.pod.notice
    if notice is not None and _is_overdue(notice, entitlement, snapshot.now):
        return Delete(victim.pod, victim.why, notice.refused_at or snapshot.now)
    return Evict(victim.pod, victim.why)


def _is_overdue(notice: Notice, entitlement: Entitlement, now: int) -> bool:
    """Tell whether disruption budgets have refused an eviction for longer than is borne."""
    policy = entitlement.policy
    return (
        policy.after_pdb_timeout is AfterPdbTimeout.DELETE
        and notice.refused_at is not None
        and notice.refused_at + policy.pdb_timeout_seconds <= now
    )
