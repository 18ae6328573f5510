# SPDX-License-Identifier: Apache-2.0
"""The newest value of one quantity of one card (or instance), from all who tell it.

Several series may tell it at the same time: an exporter repeats a shared card's value for each of
its pods, or gives each pod's own part.
"""

from collections.abc import Collection, Iterator, Mapping

from policies.telemetry.counters import Growth
from policies.telemetry.quantities import COUNTERS, SUMMED_OVER_PODS, Quantity
from policies.telemetry.samples import PodName, Sample
from policies.telemetry.smoothing import Smoother

_LARGEST_RATIO = 1.0


class Reading:
    """Mutable. What came at the newest time is merged when asked; older times are smoothed.

    There are ten for each card, so that one made of few objects spares the garbage collector.
    """

    __slots__ = ("_growth", "_others", "_pod", "_quantity", "_smoother", "_value", "time")

    def __init__(self, sample: Sample, smoother: Smoother) -> None:
        self.time = sample.time
        self._quantity = sample.quantity
        self._smoother = smoother
        self._pod = sample.subject.pod
        self._value = sample.value
        self._others: dict[PodName | None, float] | None = None
        self._growth = Growth(sample.time, sample.value) if self._counts else None

    @property
    def _counts(self) -> bool:
        return self._quantity in COUNTERS

    def take(self, sample: Sample) -> bool:
        """Take up a sample unless it is older than what is known; tell whether it was."""
        if sample.time < self.time:
            return False
        if sample.time == self.time:
            self._merge(sample.subject.pod, sample.value)
            return True
        self._smoother.add(self.time, self.value)
        self.time, self._pod, self._value = sample.time, sample.subject.pod, sample.value
        self._others = None
        if self._growth is not None:
            self._growth = self._growth.then(self.time, self._value)
        return True

    def _merge(self, pod: PodName | None, value: float) -> None:
        """Add what another series says of the same time; said twice, the worse is believed."""
        if pod == self._pod:
            self._value = self._worse((self._value, value))
            return
        if self._others is None:
            self._others = {}
        known = self._others.get(pod)
        self._others[pod] = value if known is None else self._worse((known, value))

    def resume(self, growth: Growth | None) -> None:
        """Count on from what a counter had grown before a gap."""
        if growth is not None:
            self._growth = growth.then(self.time, self._value)

    def _worse(self, values: Collection[float]) -> float:
        return min(values) if self._quantity is Quantity.MEMORY_FREE else max(values)

    @property
    def value(self) -> float:
        """Return the value at the newest time, as measured."""
        if self._others is None or self._pod is None:
            return self._value
        whole = self._others.get(None)
        if whole is not None:
            return whole
        values = (self._value, *self._others.values())
        if self._quantity not in SUMMED_OVER_PODS or len(set(values)) == 1:
            return self._worse(values)
        is_ratio = self._quantity is Quantity.UTILISATION
        return min(sum(values), _LARGEST_RATIO) if is_ratio else sum(values)

    @property
    def smoothed(self) -> float:
        """Return the value as it was declared to be smoothed."""
        return self._smoother.with_newest(self.time, self.value)

    @property
    def growth(self) -> Growth | None:
        """Return how a counter has grown; None for what is no counter."""
        return self._growth

    def pods(self) -> Iterator[tuple[PodName, float]]:
        """Yield each pod's value; see `tells_parts`."""
        if self._pod is not None:
            yield self._pod, self._value
        for pod, value in (self._others or {}).items():
            if pod is not None:
                yield pod, value

    @property
    def tells_parts(self) -> bool:
        """Whether the pods' values are their own, and not the card's repeated."""
        values = [value for _, value in self.pods()]
        return len(values) == 1 or len(set(values)) > 1


Readings = Mapping[Quantity, Mapping[int, Reading]]
"""By quantity, and then by rank."""
