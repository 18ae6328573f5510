# SPDX-License-Identifier: Apache-2.0
"""Whether nodes are filled up or pods kept apart, as documents and settings say it.

Load is that of `hot` and `cold` nodes, so that whatever else moves pods can say it alike. What
follows from it must not be here.
"""

from dataclasses import dataclass
from enum import StrEnum


class Spreading(StrEnum):
    """Which nodes come first. Auto packs while nodes have little to do, else spreads."""

    PACK = "Pack"
    SPREAD = "Spread"
    AUTO = "Auto"


@dataclass(frozen=True, slots=True)
class SpreadSettings:
    """`spread_above` is the mean load of nodes, in thousandths, from which on Auto spreads.

    It packs again `slack` below that.
    """

    strategy: Spreading = Spreading.PACK
    spread_above: int = 700
    slack: int = 100
