# SPDX-License-Identifier: Apache-2.0
"""What sifting has found of one tenant, kept as long as nothing that it depends on changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from policies.quota.gangs import GangProblem
from policies.quota.planning.turns import Lane
from policies.quota.planning.units import Unit
from policies.quota.planning.values import Hold, TakeBack, Wait
from policies.quota.planning.verdict import Way
from policies.quota.queue import Age

Depends: TypeAlias = tuple[tuple[bool, ...], tuple[int, ...]]
"""Which needs nodes have room for, and how many of the amounts can be borrowed, pool by pool."""


@dataclass(frozen=True, slots=True)
class Held:
    """A unit that cannot go, and why. `way` is how it would go first, None where quota has none."""

    tenant: str
    unit: Unit
    hold: Hold
    way: Way | None

    @property
    def uid(self) -> str:
        """Return what it is named by: the UID of its first pod."""
        return self.unit.pods[0].uid


def by_age(held: Held) -> Age:
    """Return what units are ordered by in lanes: who waits longest is the least."""
    return held.unit.order[2]


@dataclass(slots=True)
class Outcome:
    """Which units are free to go, and all that is told of the others.

    It holds while `depends` is the same, until `until` (Unix seconds; None for ever). `lanes` has
    those that lack room or lenders, the oldest first; `lacking_quota` those that their own tenant's
    quota holds, in its order.
    """

    depends: Depends
    until: int | None = None
    free: list[Unit] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    problems: list[GangProblem] = field(default_factory=list)
    take_back: list[TakeBack] = field(default_factory=list)
    lanes: dict[Lane, list[Held]] = field(default_factory=dict)
    lacking_quota: list[Held] = field(default_factory=list)


Outcomes: TypeAlias = Mapping[str, Outcome]
