# SPDX-License-Identifier: Apache-2.0
"""What is charged, kept so that sums are exact: parts of GPUs, MiB, and counts by resource name.

Shares are kept as counts of equal parts and rounded once, so that N of N shares never cost more
than their GPU. Whose amount it is must not be here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from policies.model.profile import Charge

K = TypeVar("K", int, str)


@dataclass(frozen=True, slots=True)
class Amount:
    """`parts` is numerators by denominator: {4: 3} is three quarters of a GPU, {1: 2} two GPUs.

    `mib` is usable GPU memory; `counts` devices by resource name. No entry is zero.
    """

    parts: Mapping[int, int] = field(default_factory=dict)
    mib: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def milli(self) -> int:
        """Return milli-GPU, rounded up once for each size of share."""
        return sum(-(-1000 * count // size) for size, count in self.parts.items())

    @property
    def is_nothing(self) -> bool:
        """Tell whether it is zero in everything."""
        return not (self.parts or self.mib or self.counts)

    def plus(self, other: "Amount") -> "Amount":
        """Return the sum."""
        return Amount(
            _joined(self.parts, other.parts, 1),
            self.mib + other.mib,
            _joined(self.counts, other.counts, 1),
        )

    def minus(self, other: "Amount") -> "Amount":
        """Return the difference, which may be negative."""
        return Amount(
            _joined(self.parts, other.parts, -1),
            self.mib - other.mib,
            _joined(self.counts, other.counts, -1),
        )

    def times(self, count: int) -> "Amount":
        """Return so many of it."""
        return Amount(
            {size: n * count for size, n in self.parts.items() if count},
            self.mib * count,
            {name: n * count for name, n in self.counts.items() if count},
        )


NOTHING = Amount()


def share(charge: Charge, units: int) -> Amount:
    """Return what so many units of a form are of GPUs."""
    count = charge.numerator * units
    return Amount({charge.denominator: count}) if count else NOTHING


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of many amounts."""
    parts: dict[int, int] = {}
    counts: dict[str, int] = {}
    mib = 0
    for amount in amounts:
        for size, count in amount.parts.items():
            parts[size] = parts.get(size, 0) + count
        for name, count in amount.counts.items():
            counts[name] = counts.get(name, 0) + count
        mib += amount.mib
    return Amount(
        {size: count for size, count in parts.items() if count},
        mib,
        {name: count for name, count in counts.items() if count},
    )


def _joined(left: Mapping[K, int], right: Mapping[K, int], sign: int) -> Mapping[K, int]:
    if not right:
        return left
    joined = dict(left)
    for key, count in right.items():
        joined[key] = joined.get(key, 0) + sign * count
    return {key: count for key, count in joined.items() if count}
