# SPDX-License-Identifier: Apache-2.0
"""Samples for tests, and clocks that stand still until they are set."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from policies.telemetry.freshness import Freshness
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import PodName, Sample, Subject
from policies.telemetry.smoothing import Smoothing
from policies.telemetry.state import Outcome, TelemetryState

NOW = 1_800_000_000.0
LIMITS = Freshness(max_age_seconds=30.0, skew_seconds=5.0)
CARD = Subject("node-a", "GPU-0", 0)


@dataclass(slots=True)
class Clock:
    """A clock that a test sets."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class Known:
    """A state with a clock: `put` at the present, `view` a node."""

    smoothing: Mapping[Quantity, Smoothing] = field(default_factory=dict)
    now: float = NOW
    limits: Callable[[str], Freshness] = lambda _: LIMITS
    state: TelemetryState = field(init=False)

    def __post_init__(self) -> None:
        self.state = TelemetryState(self.limits, self.smoothing, Freshness(300.0))

    def put(
        self,
        quantity: Quantity,
        value: float,
        subject: Subject = CARD,
        *,
        age: float = 0.0,
        rank: int = 0,
    ) -> Outcome:
        """Put one sample that is `age` seconds old."""
        return self.state.put(Sample(quantity, subject, value, self.now - age, rank), self.now)

    def busy(self, value: float, subject: Subject = CARD, *, age: float = 0.0) -> Outcome:
        """Put a utilisation."""
        return self.put(Quantity.UTILISATION, value, subject, age=age)

    def memory(self, used: float, free: float, subject: Subject = CARD) -> None:
        """Put used and free MiB."""
        self.put(Quantity.MEMORY_USED, used, subject)
        self.put(Quantity.MEMORY_FREE, free, subject)


def of_pod(subject: Subject, name: str) -> Subject:
    """Return the subject of a pod's series."""
    pod = PodName("team-a", name, "main")
    return Subject(
        subject.node, subject.uuid, subject.index, subject.instance, subject.profile, pod
    )


class Taken:
    """Takes up samples, for tests of sources."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def __call__(self, samples: Iterable[Sample]) -> None:
        self.samples.extend(samples)

    def values(self, quantity: Quantity) -> dict[str, float]:
        """Return the values of a quantity by node and card."""
        return {
            f"{sample.subject.node}/{sample.subject.card}": sample.value
            for sample in self.samples
            if sample.quantity is quantity
        }
