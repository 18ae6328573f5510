# SPDX-License-Identifier: Apache-2.0
"""Whether a node that refused pods by what its cards do may take some by now. Pure."""

from policies.placement.occupancy import Gauge


def has_eased(before: Gauge, now: Gauge, threshold: int) -> bool:
    """Tell whether a refusal made by one gauge may not be made by a later one.

    `threshold` of load is in thousandths. What is not known any more refuses nobody.
    """
    return (
        _is_hot(before, threshold) > _is_hot(now, threshold)
        or _cool(now, threshold) > _cool(before, threshold)
        or (bool(before.loads) and not now.loads)
        or _has_more(before.free_mib, now.free_mib)
    )


def _is_hot(gauge: Gauge, threshold: int) -> bool:
    return gauge.load is not None and gauge.load >= threshold


def _cool(gauge: Gauge, threshold: int) -> int:
    return sum(load < threshold for load in gauge.loads)


def _has_more(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """Tell whether some card has more memory free, or it is not known of all any more."""
    if len(before) != len(now):
        return bool(before)
    return any(later > earlier for earlier, later in zip(before, now, strict=True))
