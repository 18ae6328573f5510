# SPDX-License-Identifier: Apache-2.0
"""One order of nodes that were ranked apart, since their pools are ranked by different strategies.

Keys of different strategies cannot be compared. So nodes that are filled up come before those
that pods are kept apart on: these are to stay free while the others can take what comes.
"""

from collections.abc import Sequence
from typing import Final

from policies.placement.scoring import Ranking

TOO_SMALL: Final = 0
"""Which number of every key tells that a node seems too small."""


def merged(rankings: Sequence[Ranking]) -> Ranking:
    """Return the nodes of all rankings, which have none in common, in one order.

    Each ranking keeps its own order, and the first goes before the second; but one that seems too
    small still comes after all others.
    """
    if len(rankings) == 1:
        return rankings[0]
    tables = tuple(table for ranking in rankings for table in ranking.tables)
    small = {
        name
        for table in tables
        for name, is_small in zip(table.names, table.columns[TOO_SMALL], strict=True)
        if is_small
    }
    names = [name for ranking in rankings for name in ranking.order]
    fit = [name for name in names if name not in small]
    return Ranking((*fit, *(name for name in names if name in small)), tables)
