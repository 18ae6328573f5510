# SPDX-License-Identifier: Apache-2.0
"""What is free of cards' memory: by what pods state, and by what is measured; the less counts.

A pod that was just given a card does not use yet what it states, and one that states nothing uses
what only measuring shows.
"""

from collections.abc import Sequence

from policies.model.profile import SharingMode
from policies.placement.groups import CardGroup


def free_mib(
    group: CardGroup, measured: Sequence[int], *, is_anchored: bool = False
) -> Sequence[int | None]:
    """Return the MiB free of each device. `measured` are those of all cards; empty if unknown.

    `is_anchored` tells that the devices are the cards in this order. Else which is which is not
    known, and the fullest is taken for the fullest. MIG instances are not measured.
    """
    if group.mode is SharingMode.MIG or len(measured) != len(group.free):
        return group.free_mib
    order = range(len(measured)) if is_anchored else group.fullest
    found = list(group.free_mib)
    for index, mib in zip(order, measured if is_anchored else sorted(measured), strict=True):
        own = found[index]
        if own is None or own > mib:
            found[index] = mib
    return found
