# SPDX-License-Identifier: Apache-2.0
"""What sifting has found of one tenant, kept as long as nothing that it depends on changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from policies.quota.gangs import GangProblem
from policies.quota.planning.units import Unit
from policies.quota.planning.values import Hold, TakeBack, Wait
from policies.quota.planning.verdict import Way

Depends: TypeAlias = tuple[tuple[bool, ...], tuple[int, ...]]
"""Which needs nodes have room for, and how many of the amounts can be borrowed, pool by pool."""


@dataclass(frozen=True, slots=True)
class Held:
    """A unit that cannot go, and why. `way` is how it would go first, None where quota has none."""

    tenant: str
    unit: Unit
    hold: Hold
    way: Way | None


@dataclass(slots=True)
class Outcome:
    """Which units are free to go, and all that is told of the others.

    It holds while `depends` is the same, until `until` (Unix seconds; None for ever). `oldest` has
    by pool the one that lacks room or lenders and has waited longest.
    """

    depends: Depends
    until: int | None = None
    free: list[Unit] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    problems: list[GangProblem] = field(default_factory=list)
    take_back: list[TakeBack] = field(default_factory=list)
    oldest: dict[str, Held] = field(default_factory=dict)


Outcomes: TypeAlias = Mapping[str, Outcome]
