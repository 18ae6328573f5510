# SPDX-License-Identifier: Apache-2.0
"""One measured value, of what, and when: the one form in which every source hands them over."""

from dataclasses import dataclass

from policies.telemetry.quantities import Quantity


@dataclass(frozen=True, slots=True)
class PodName:
    """The pod, and its container, that a series is attributed to."""

    namespace: str
    name: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a value was measured of: a card, a MIG instance on it, a pod's part of either.

    `uuid` may be empty; `index` is the card's number on its node, None where it is not told. With
    neither, the value is of all cards of the node together. `instance` is the GPU instance's id.
    """

    node: str
    uuid: str = ""
    index: int | None = None
    instance: str = ""
    profile: str = ""
    pod: PodName | None = None

    @property
    def card(self) -> str:
        """The card's name within its node; empty for the whole node."""
        if self.uuid:
            return self.uuid
        return "" if self.index is None else f"#{self.index}"


@dataclass(frozen=True, slots=True)
class Sample:
    """A value in its quantity's unit. `time` is the sample's own, in Unix seconds.

    `rank` orders metrics that tell the same quantity: the lowest that is fresh counts.
    """

    quantity: Quantity
    subject: Subject
    value: float
    time: float
    rank: int = 0
