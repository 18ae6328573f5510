# SPDX-License-Identifier: Apache-2.0
"""Whether nodes are filled up or pods kept apart: as chosen, or by what the cluster has to do."""

from dataclasses import dataclass
from enum import StrEnum

from policies.placement.scoring import Strategy


class Spreading(StrEnum):
    """Which nodes come first. Auto packs while the cluster has little to do, else spreads."""

    PACK = "Pack"
    SPREAD = "Spread"
    AUTO = "Auto"


@dataclass(frozen=True, slots=True)
class SpreadSettings:
    """`spread_above` is the cluster's mean load, in thousandths, from which on Auto spreads.

    It packs again `slack` below that.
    """

    strategy: Spreading = Spreading.PACK
    spread_above: int = 700
    slack: int = 100


class Spreader:
    """Chooses the strategy. Mutable: which of the two bounds counts depends on the last choice."""

    def __init__(self, settings: SpreadSettings) -> None:
        self._settings = settings
        self._spreads = False

    def strategy(self, load: int | None, *, is_exclusive: bool) -> Strategy:
        """Return the strategy; exclusive pods are always packed, since they heat nobody's card.

        `load` is the cluster's mean, in thousandths; None, while it is unknown, changes nothing.
        """
        match self._settings.strategy:
            case Spreading.PACK:
                return Strategy.PACK
            case Spreading.SPREAD:
                return Strategy.PACK if is_exclusive else Strategy.SPREAD
        bound = self._settings.spread_above
        if load is not None:
            self._spreads = load >= (bound - self._settings.slack if self._spreads else bound)
        return Strategy.SPREAD if self._spreads and not is_exclusive else Strategy.PACK
