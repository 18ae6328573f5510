# SPDX-License-Identifier: Apache-2.0
"""The end of what runs of torn gangs: told first, as whoever is taken back is. Pure.

Nobody gets the room, so no plan needs these pods; that their gang is still torn is what the release
planner has just said. A gang that is completed in time loses its notices like all that are not
needed any more.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from policies.model.reclaim import ReclaimPolicy
from policies.quota.planning.values import TakeBack
from policies.quota.pods import Notice, QuotaPod
from policies.quota.reclaim.limits import Limits, limits_of
from policies.quota.reclaim.outcome import Delete, Evict, Forewarn, GiveUp, ReclaimPlan
from policies.quota.reclaim.snapshot import Snapshot

RULE: Final = "gangTimeout"
"""What notices and the audit log name: the setting by which a gang is torn for too long."""

PolicyOf = Callable[[str], ReclaimPolicy]
"""The reclaim policy of a tenant, by its name."""


def give_up(
    snapshot: Snapshot, plan: ReclaimPlan, torn: Sequence[TakeBack], policy_of: PolicyOf
) -> Iterator[Forewarn | GiveUp]:
    """Yield notices, and ends as far as the disruption budget has room beside the plan.

    What runs of one gang ends together, once the notice of each has run out.
    """
    limits = limits_of(snapshot)
    planned = {command.pod.uid for command in plan.commands}
    for command in plan.commands:
        if isinstance(command, Evict | Delete):
            limits.spend([(command.why.giver.tenant, command.pod.node)])
    for take_back in torn:
        pods = [
            pod
            for pod in take_back.pods
            if pod.uid not in snapshot.going and pod.uid not in planned and not pod.deleted_at
        ]
        notice_seconds = policy_of(take_back.tenant).notice_seconds
        yield from _notices(snapshot, take_back, pods, notice_seconds)
        if all(pod.notice and pod.notice.evict_at <= snapshot.now for pod in pods):
            yield from _ends(snapshot, take_back, pods, limits)


def uids_of(torn: Sequence[TakeBack]) -> frozenset[str]:
    """Return the pods whose notices stand for as long as their gangs are torn."""
    return frozenset(pod.uid for take_back in torn for pod in take_back.pods)


def _notices(
    snapshot: Snapshot, take_back: TakeBack, pods: Sequence[QuotaPod], seconds: int
) -> Iterator[Forewarn]:
    name = f"{take_back.gang.namespace}/{take_back.gang.name}"
    for pod in pods:
        if pod.notice is None:
            notice = Notice(name, RULE, snapshot.now, snapshot.now + seconds)
            yield Forewarn(_end(snapshot, take_back, pod), notice)


def _ends(
    snapshot: Snapshot, take_back: TakeBack, pods: Sequence[QuotaPod], limits: Limits
) -> Iterator[GiveUp]:
    for pod in pods:
        where = [(take_back.tenant, pod.node)]
        if snapshot.refused.get(pod.uid, 0) <= snapshot.now and limits.admits(where):
            limits.spend(where)
            yield _end(snapshot, take_back, pod)


def _end(snapshot: Snapshot, take_back: TakeBack, pod: QuotaPod) -> GiveUp:
    return GiveUp(pod, take_back.tenant, take_back.text, snapshot.generation, snapshot.now)
