# SPDX-License-Identifier: Apache-2.0
"""Who should have how much of a pool: weighted water-filling, in whole milli-GPU.

Guarantees first, then the rest by weight, nobody past what it asks or may have. Pure arithmetic:
what is used now, and what follows from a share, must not be here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key


@dataclass(frozen=True, slots=True)
class Claim:
    """What one party asks of a capacity, in milli-GPU. `ceiling_milli` is None for no ceiling.

    Nothing here may be negative. A weight of 0 gets no more than the guarantee, until all who have
    a weight are content.
    """

    name: str
    request_milli: int
    guarantee_milli: int = 0
    ceiling_milli: int | None = None
    weight: int = 1

    @property
    def demand_milli(self) -> int:
        """Return what it can be given at most."""
        if self.ceiling_milli is None:
            return self.request_milli
        return min(self.request_milli, self.ceiling_milli)

    @property
    def floor_milli(self) -> int:
        """Return what it gets before anybody gets more than theirs."""
        return min(self.demand_milli, self.guarantee_milli)


def fair_shares(capacity_milli: int, claims: Iterable[Claim]) -> Mapping[str, int]:
    """Return the share of each claim by name; together they are min(capacity, sum of demands).

    Guarantees that exceed the capacity are scaled down in proportion. The rest is filled by weight
    as water fills vessels of different depth, and rounded by largest remainder, ties by name; the
    order of the claims is of no effect. Source of the method: Koordinator's runtime quota
    (runtime_quota_calculator.go), Hamilton's apportionment.
    """
    ordered = sorted(claims, key=lambda claim: claim.name)
    capacity = max(0, capacity_milli)
    floors = [claim.floor_milli for claim in ordered]
    if sum(floors) >= capacity:
        shares = _apportioned(capacity, floors)
    else:
        shares = _filled(capacity - sum(floors), ordered, floors)
    return {claim.name: share for claim, share in zip(ordered, shares, strict=True)}


def _filled(rest: int, ordered: Sequence[Claim], floors: Sequence[int]) -> list[int]:
    shares = list(floors)
    depths = [claim.demand_milli - floor for claim, floor in zip(ordered, floors, strict=True)]
    weights = [claim.weight for claim in ordered]
    for chosen in (
        [i for i, weight in enumerate(weights) if weight > 0],
        [i for i, weight in enumerate(weights) if weight == 0],
    ):
        poured = _poured(rest, [depths[i] for i in chosen], [weights[i] or 1 for i in chosen])
        for i, more in zip(chosen, poured, strict=True):
            shares[i] += more
        rest -= sum(poured)
    return shares


def _poured(rest: int, depths: Sequence[int], weights: Sequence[int]) -> list[int]:
    """Fill vessels by weight: those that are full at the common level leave the rest to others."""
    poured = [0] * len(depths)

    def by_level(i: int, j: int) -> int:
        return depths[i] * weights[j] - depths[j] * weights[i]

    # In order of the level (depth per weight) at which each is full, compared without fractions.
    order = sorted(range(len(depths)), key=cmp_to_key(by_level))
    open_weight = sum(weights)
    for place, i in enumerate(order):
        if depths[i] * open_weight > rest * weights[i]:
            parted = sorted(order[place:])
            parts = _apportioned(rest, [weights[j] for j in parted])
            for j, part in zip(parted, parts, strict=True):
                poured[j] = part
            return poured
        poured[i] = depths[i]
        rest -= depths[i]
        open_weight -= weights[i]
    return poured


def _apportioned(total: int, weights: Sequence[int]) -> list[int]:
    """Divide a total by weight, rounded by largest remainder; ties go to the first.

    A part whose exact size is at most some whole number is at most that when rounded, too.
    """
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    parts = [total * weight // whole for weight in weights]
    missing = total - sum(parts)
    for i in sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))[:missing]:
        parts[i] += 1
    return parts
