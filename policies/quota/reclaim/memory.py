# SPDX-License-Identifier: Apache-2.0
"""What past passes have done: whom they disturbed, who was refused, who is expected to end.

For one leadership. What must outlive it is on the pods: notices, since when budgets refuse, and
that they are being deleted. Pure: times are arguments (Unix seconds).
"""

from collections.abc import Callable, Container, Iterable
from typing import Final

from policies.quota.pods import QuotaPod, Source
from policies.quota.reclaim.picture import Remembered
from policies.quota.reclaim.snapshot import Disruption

_EXPECT_SECONDS: Final = 15
"""How long an end that was asked for may take to show before it is asked for again."""


class Memory:
    """Mutable; told of what was done and what was seen.

    `hold_back` is called with a source and until when its pods may not borrow, 0 if they may.
    """

    def __init__(
        self, hold_back: Callable[[Source, int], None] = lambda _source, _until: None
    ) -> None:
        self._hold_back = hold_back
        self._took_over_at: int | None = None
        self._spent: dict[str, Disruption] = {}
        self._refused: dict[str, int] = {}
        self._going: dict[str, int] = {}
        self._unneeded_since: dict[str, int] = {}
        self._held: dict[Source, dict[str, int]] = {}
        """By source the UIDs of what was taken back, each with until when that counts."""

    def recover(self, pods: Iterable[QuotaPod], tenant_of: dict[str, str], now: int) -> None:
        """Take over from a past leader: pods with a notice that are being deleted were disturbed.

        `tenant_of` is by UID. Which others were is not known any more, so until `per` of the
        disruption budget has passed it counts as used up, where it sets any bound.
        """
        self._took_over_at = now
        for pod in pods:
            if pod.notice is not None and pod.deleted_at is not None and pod.uid in tenant_of:
                at = pod.deleted_at - pod.shape.grace_seconds
                self._spent.setdefault(pod.uid, Disruption(at, tenant_of[pod.uid], pod.node))

    def ended(self, pod: QuotaPod, disruption: Disruption, readmit_after_seconds: int) -> None:
        """Know that a pod's end was asked for, and may have been granted."""
        self._spent[pod.uid] = disruption
        self._refused.pop(pod.uid, None)
        self._going[pod.uid] = disruption.at + _EXPECT_SECONDS
        if readmit_after_seconds > 0:
            self._held.setdefault(pod.source, {})[pod.uid] = disruption.at + readmit_after_seconds
            self._hold_back(pod.source, self.held_until(pod))

    def refused(self, pod: QuotaPod, until: int) -> None:
        """Know that a pod stays for now. It was not disturbed."""
        self._spent.pop(pod.uid, None)
        self._going.pop(pod.uid, None)
        self._refused[pod.uid] = until
        held = self._held.get(pod.source, {})
        if held.pop(pod.uid, None) is not None:
            self._hold_back(pod.source, self.held_until(pod))

    def planned(self, victims: Container[str], told: Iterable[str], now: int) -> None:
        """Know whom a plan needs, by UID; `told` are all that have a notice."""
        self._unneeded_since = {
            uid: self._unneeded_since.get(uid, now) for uid in told if uid not in victims
        }

    def seen(self, pod: QuotaPod) -> None:
        """Take note of a pod as its watch shows it."""
        if pod.deleted_at is not None:
            self._going.pop(pod.uid, None)
            self._refused.pop(pod.uid, None)

    def gone(self, uid: str) -> None:
        """Forget a pod that is no more; that it was disturbed still counts."""
        self._going.pop(uid, None)
        self._refused.pop(uid, None)

    def held_until(self, pod: QuotaPod) -> int:
        """Return until when pods of a pod's source may not borrow again, 0 if they may."""
        return max(self._held.get(pod.source, {}).values(), default=0)

    def remembered(self, now: int, per_seconds: int, told: Iterable[str] = ()) -> Remembered:
        """Return what still counts, and forget the rest. `told` are UIDs of pods with a notice."""
        self._spent = {u: d for u, d in self._spent.items() if d.at > now - per_seconds}
        self._refused = {uid: until for uid, until in self._refused.items() if until > now}
        self._going = {uid: until for uid, until in self._going.items() if until > now}
        left = {
            s: {uid: until for uid, until in h.items() if until > now}
            for s, h in self._held.items()
        }
        self._held = {source: held for source, held in left.items() if held}
        took_over_at = self._took_over_at
        return Remembered(
            spent=tuple(self._spent.values()),
            budget_used_up_until=0 if took_over_at is None else took_over_at + per_seconds,
            refused=dict(self._refused),
            going=frozenset(self._going),
            unneeded_since=dict(self._unneeded_since),
            told=tuple(told),
        )
