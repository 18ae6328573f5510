# SPDX-License-Identifier: Apache-2.0
"""The newest value of one quantity of one card (or instance), from all who tell it.

Several series may tell it at the same time: an exporter repeats a shared card's value for each of
its pods, or gives each pod's own part.
"""

from collections.abc import Iterator, Mapping

from policies.telemetry.counters import Growth
from policies.telemetry.quantities import COUNTERS, SUMMED_OVER_PODS, Quantity
from policies.telemetry.samples import PodName, Sample
from policies.telemetry.smoothing import Smoother

_LARGEST_RATIO = 1.0


class Reading:
    """Mutable. What came at the newest time is merged when asked; older times are smoothed."""

    __slots__ = ("_growth", "_parts", "_quantity", "_smoother", "time")

    def __init__(self, sample: Sample, smoother: Smoother) -> None:
        self.time = sample.time
        self._quantity = sample.quantity
        self._smoother = smoother
        self._parts: dict[PodName | None, float] = {sample.subject.pod: sample.value}
        self._growth = Growth(sample.time, sample.value)

    def take(self, sample: Sample) -> bool:
        """Take up a sample unless it is older than what is known; tell whether it was."""
        if sample.time < self.time:
            return False
        if sample.time > self.time:
            self._smoother.add(self.time, self.value)
            self._parts.clear()
            self.time = sample.time
        pod = sample.subject.pod
        known = self._parts.get(pod)
        # The same at the same time twice can only be a duplicate: the worse is believed.
        self._parts[pod] = sample.value if known is None else self._worse(known, sample.value)
        if self._quantity in COUNTERS:
            self._growth = self._growth.then(self.time, self.value)
        return True

    def resume(self, growth: Growth) -> None:
        """Count on from what a counter had grown before a gap."""
        if self._quantity in COUNTERS:
            self._growth = growth.then(self.time, self.value)

    def _worse(self, one: float, other: float) -> float:
        return min(one, other) if self._quantity is Quantity.MEMORY_FREE else max(one, other)

    @property
    def value(self) -> float:
        """Return the value at the newest time, as measured."""
        parts = self._parts
        whole = parts.get(None)
        if whole is not None:
            return whole
        values = list(parts.values())
        if len(values) == 1:
            return values[0]
        if self._quantity in SUMMED_OVER_PODS and len(set(values)) > 1:
            total = sum(values)
            ratio = self._quantity is Quantity.UTILISATION
            return min(total, _LARGEST_RATIO) if ratio else total
        return min(values) if self._quantity is Quantity.MEMORY_FREE else max(values)

    @property
    def smoothed(self) -> float:
        """Return the value as it was declared to be smoothed."""
        return self._smoother.with_newest(self.time, self.value)

    @property
    def growth(self) -> Growth:
        """Return how a counter has grown."""
        return self._growth

    def pods(self) -> Iterator[tuple[PodName, float]]:
        """Yield each pod's value; see `tells_parts`."""
        for pod, value in self._parts.items():
            if pod is not None:
                yield pod, value

    @property
    def tells_parts(self) -> bool:
        """Whether the pods' values are their own, and not the card's repeated."""
        values = [value for pod, value in self._parts.items() if pod is not None]
        return len(values) == 1 or len(set(values)) > 1


Readings = Mapping[Quantity, Mapping[int, Reading]]
"""By quantity, and then by rank."""
