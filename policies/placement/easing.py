# SPDX-License-Identifier: Apache-2.0
"""Whether a node that refused pods by what its cards do or hold may take some by now. Pure."""

from collections.abc import Collection

from policies.placement.occupancy import Gauge


def has_eased(before: Gauge, now: Gauge, threshold: int, needs_mib: Collection[int] = ()) -> bool:
    """Tell whether a refusal made by one gauge may not be made by a later one.

    `threshold` of load is in thousandths; `needs_mib` are those of the pods that were refused for
    memory. What is not known any more refuses nobody.
    """
    return (
        _is_hot(before, threshold) > _is_hot(now, threshold)
        or _cool(now, threshold) > _cool(before, threshold)
        or (bool(before.loads) and not now.loads)
        or (bool(before.free_mib) and len(now.free_mib) != len(before.free_mib))
        or any(_roomy(now, need) > _roomy(before, need) for need in needs_mib)
    )


def _is_hot(gauge: Gauge, threshold: int) -> bool:
    return gauge.load is not None and gauge.load >= threshold


def _cool(gauge: Gauge, threshold: int) -> int:
    return sum(load < threshold for load in gauge.loads)


def _roomy(gauge: Gauge, need_mib: int) -> int:
    """Return how many cards have so much memory free."""
    return sum(mib >= need_mib for mib in gauge.free_mib)
