# SPDX-License-Identifier: Apache-2.0
"""Gangs: which pods belong together, whether all are there, and when a torn one is given up.

A gang is released all or none. One that is half released, because a leader crashed or a member was
lost, is completed before anything else of its tenant; if that takes too long, what runs of it is
taken back. Quota and nodes must not be here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from policies.quota.pods import Phase, QuotaPod


class GangKey(NamedTuple):
    """What names a gang in the cluster."""

    namespace: str
    name: str
    is_pod_group: bool = False


class GangState(StrEnum):
    """How far a gang is."""

    READY = "Ready"
    """All are there, or run already beside what waits, and wait for nothing but quota."""
    TORN = "Torn"
    """Some were released, too few; the others wait."""
    INCOMPLETE = "Incomplete"
    """Some have not been made yet, or have gates of others."""
    WRONG = "Wrong"
    """Its members do not agree on a size, or are more than it."""


@dataclass(frozen=True, slots=True)
class GangProblem:
    """That a gang cannot be released as it is: for an Event on its members."""

    gang: GangKey
    text: str
    pods: tuple[QuotaPod, ...]


@dataclass(frozen=True, slots=True)
class GangReport:
    """How far a gang is, in one word and in a few."""

    state: GangState
    text: str = ""
    is_problem: bool = False


def gang_key(pod: QuotaPod) -> GangKey | None:
    """Return the gang that a pod says it belongs to."""
    if pod.gang is None:
        return None
    return GangKey(pod.namespace, pod.gang.name, pod.gang.is_pod_group)


@dataclass(eq=False, slots=True)
class Members:
    """The members of a gang that are known and to live, by UID, and those that have ended.

    `tenant` owns its namespace. `declared` is the size that a PodGroup states, None without one.
    """

    key: GangKey
    tenant: str
    declared: int | None = None
    waiting: dict[str, QuotaPod] = field(default_factory=dict)
    held: dict[str, QuotaPod] = field(default_factory=dict)
    live: dict[str, QuotaPod] = field(default_factory=dict)
    ended: dict[str, QuotaPod] = field(default_factory=dict)

    def put(self, pod: QuotaPod) -> None:
        """Take a member as it is now; one that is being deleted is none any more."""
        self.remove(pod.uid)
        if pod.deleted_at is None:
            self._of(pod.phase)[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Forget a member."""
        for some in (self.waiting, self.held, self.live, self.ended):
            some.pop(uid, None)

    @property
    def is_empty(self) -> bool:
        """Tell whether no member is left."""
        return not (self.waiting or self.held or self.live or self.ended)

    def report(self, now: int, timeout_seconds: int) -> GangReport:
        """Tell how far it is. After the timeout a count that is short is a problem.

        Members that have ended are made again by their controllers, but not all of them: what is
        short by no more than those is complete once nothing has been added for the timeout.
        """
        sizes = self._sizes()
        if len(sizes) != 1:
            return _wrong("its members do not agree on its size" if sizes else _NO_SIZE)
        (size,) = sizes
        present = len(self.waiting) + len(self.held) + len(self.live)
        if present > size and not self.key.is_pod_group:
            return _wrong(f"{present} pods of a gang of {size}")
        if self.is_torn:
            return GangReport(GangState.TORN)
        if self.live:
            return GangReport(GangState.READY)
        if self.held:
            return GangReport(GangState.INCOMPLETE, f"{len(self.held)} have gates of others")
        is_late = now - self._latest() >= timeout_seconds
        if present >= size or (is_late and present + len(self.ended) >= size):
            return GangReport(GangState.READY)
        return GangReport(GangState.INCOMPLETE, f"{present} of {size} pods are there", is_late)

    @property
    def is_torn(self) -> bool:
        """Tell whether some were released, and fewer than it needs as far as those released say.

        Where nothing says how many it needs, all that is there counts as needed.
        """
        needed = self.declared
        if not self.key.is_pod_group:
            needed = max((p.gang.size or 0 for p in self.live.values() if p.gang), default=0)
        return bool(self.live) and (not needed or len(self.live) < needed)

    def is_overdue(self, now: int, timeout_seconds: int) -> bool:
        """Tell whether it has been torn, and nothing of it released, for too long."""
        return bool(self.is_torn and self.waiting) and now - self._stirred_at() >= timeout_seconds

    def changes_at(self, now: int, timeout_seconds: int) -> int | None:
        """Return when the answers may change though no member does, None for never."""
        at = self._stirred_at() + timeout_seconds
        return at if at > now else None

    def to_take_back(self) -> tuple[QuotaPod, ...]:
        """Return what of it runs and would be made again: not bare pods, nor exclusive ones."""
        return tuple(
            pod for _, pod in sorted(self.live.items()) if pod.owner and not pod.shape.exclusive
        )

    def all(self) -> Iterator[QuotaPod]:
        """Yield those that are to live."""
        yield from self.waiting.values()
        yield from self.held.values()
        yield from self.live.values()

    def _sizes(self) -> set[int]:
        if self.key.is_pod_group:
            return set() if self.declared is None else {self.declared}
        sizes = {None if pod.gang is None else pod.gang.size for pod in self.all()}
        return set() if None in sizes and len(sizes) == 1 else {s or 0 for s in sizes}

    def _stirred_at(self) -> int:
        """Return when last one was released, or one was made that waits."""
        released = (pod.started_at or pod.created_at for pod in self.live.values())
        return max(self._latest(), max(released, default=0))

    def _latest(self) -> int:
        return max((pod.created_at for pod in self.waiting.values()), default=0)

    def _of(self, phase: Phase) -> dict[str, QuotaPod]:
        by_phase: Mapping[Phase, dict[str, QuotaPod]] = {
            Phase.WAITING: self.waiting,
            Phase.HELD: self.held,
            Phase.LIVE: self.live,
            Phase.ENDED: self.ended,
        }
        return by_phase[phase]


_NO_SIZE = "it does not say how many pods it has"


def _wrong(text: str) -> GangReport:
    return GangReport(GangState.WRONG, text, is_problem=True)
