# SPDX-License-Identifier: Apache-2.0
"""How long pods wait that their tenant's guarantee covers, by the observer's own numbers.

Beside those that are before them in their tenant's line: of ten pods that ask for what one of them
could have, one is owed it.
"""

from collections import Counter
from fractions import Fraction

from tests.prove.observer import Observer
from tests.prove.seen import SeenPod


class OwedWaits:
    """Seconds by uid. Look before anything changes, and whenever something has."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._since = 0
        self._owed: list[str] = []
        self.seconds: Counter[str] = Counter()

    def look(self, now: int) -> None:
        """Count what was waited since the last look by those that were owed then."""
        for uid in self._owed:
            self.seconds[uid] += now - self._since
        self._since = now
        self._owed = self._found()

    def of(self, kind: str) -> list[int]:
        """Return what each released pod of the tenants of a kind has waited, the shortest first."""
        releases = self._observer.releases.values()
        return sorted(self.seconds[r.uid] for r in releases if r.tenant.startswith(kind))

    def _found(self) -> list[str]:
        observer, found = self._observer, []
        used: dict[str, Fraction] = {}
        for pod in sorted(observer.waiting(), key=_order):
            tenant = observer.tenant(pod)
            if tenant is not None:
                total = used.get(tenant.name, observer.used[tenant.name]) + pod.cost
                if total <= tenant.guarantee:
                    found.append(pod.uid)
                    used[tenant.name] = total
        return found


def _order(pod: SeenPod) -> tuple[int, str, str]:
    return -pod.priority, pod.created, pod.name
