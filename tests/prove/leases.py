# SPDX-License-Identifier: Apache-2.0
"""What the leader's Lease said at every moment, and whether it told of each release in time.

All objects of one etcd share the counter of their versions, so a pod's event can be placed between
two states of the Lease. How intents are written is not known here: an intent is told if the pod's
uid stands anywhere in the Lease's annotations.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tests.prove.findings import Breach, Finding
from tests.prove.observer import Observer
from tests.prove.seen import SeenPod
from tests.prove.world import Json

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The Lease as one event showed it. `is_known` is False where history before it was lost."""

    version: int
    holder: str
    uids: frozenset[str]
    term: int
    """Its leaseTransitions: a holder that comes back after a crash begins another."""
    is_known: bool = True


class LeaseHistory:
    """All states of one Lease, in order."""

    def __init__(self) -> None:
        self.states: list[LeaseState] = []

    def take(self, lease: Json, *, is_known: bool = True) -> None:
        """Add a state; one that is older than the last is passed over."""
        version = int(lease["metadata"]["resourceVersion"])
        if self.states and version <= self.states[-1].version:
            return
        texts = lease["metadata"].get("annotations", {}).values()
        uids = frozenset(uid for text in texts for uid in _UID.findall(text))
        holder = lease["spec"].get("holderIdentity") or ""
        term = int(lease["spec"].get("leaseTransitions") or 0)
        self.states.append(LeaseState(version, holder, uids, term, is_known))

    @property
    def holder(self) -> str:
        """Return who holds it now."""
        return self.states[-1].holder if self.states else ""

    @property
    def term(self) -> int:
        """Return the number of the last term, also once it is over."""
        return self.states[-1].term if self.states else 0

    @property
    def terms(self) -> int:
        """Return how often another term began, of whomever."""
        terms = [state.term for state in self.states if state.holder]
        return sum(1 for old, new in pairwise(terms) if old != new)

    def tells(self, uid: str, version: int) -> bool | None:
        """Tell whether the Lease named a pod when version `version` was written; None: unknown."""
        after = bisect_left(self.states, version, key=lambda state: state.version)
        if after == 0:
            return None
        if uid in self.states[after - 1].uids:
            return True
        is_lost = after < len(self.states) and not self.states[after].is_known
        return None if is_lost else False


def undeclared(history: LeaseHistory, observer: Observer) -> list[Finding]:
    """Return the releases and the evictions through the API that the Lease did not tell of."""
    releases = ((r.uid, r.label, r.version, "released") for r in observer.releases.values())
    evictions = ((p.uid, p.label, p.version, "evicted") for p in _by_api(observer))
    return [
        Finding(Breach.UNDECLARED, f"{label}: {what}, and the Lease did not say so", uid, version)
        for uid, label, version, what in (*releases, *evictions)
        if history.tells(uid, version) is False
    ]


def declared(history: LeaseHistory, observer: Observer) -> int:
    """Return how many releases the Lease is known to have told of."""
    return sum(history.tells(r.uid, r.version) is True for r in observer.releases.values())


def _by_api(observer: Observer) -> Iterable[SeenPod]:
    return (pod for pod in observer.evictions.values() if pod.disruption == "EvictionByEvictionAPI")
