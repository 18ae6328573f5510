# SPDX-License-Identifier: Apache-2.0
"""What is measured, in which unit it is kept, and which values cannot be measurements.

Exporters write sentinels where they have nothing to say (DCGM's blanks 2147483632, 140737488355328
and 9223372036854775792, AMD's 65535), which all lie outside of these ranges.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Quantity(StrEnum):
    """A thing measured of a card. Names end with the unit; those without one are ratios of 1."""

    UTILISATION = "utilisation"
    MEMORY_USED = "memory_used_mib"
    MEMORY_FREE = "memory_free_mib"
    MEMORY_RESERVED = "memory_reserved_mib"
    MEMORY_TOTAL = "memory_total_mib"
    SM_OCCUPANCY = "sm_occupancy"
    POWER = "power_watts"
    ENERGY = "energy_joules"
    TEMPERATURE = "temperature_celsius"
    XID = "xid"
    UNCORRECTABLE_ERRORS = "uncorrectable_errors"


COUNTERS: Final = frozenset({Quantity.ENERGY, Quantity.UNCORRECTABLE_ERRORS})
"""Those that only grow, until a restart sets them back."""

SUMMED_OVER_PODS: Final = frozenset({Quantity.UTILISATION, Quantity.MEMORY_USED})
"""Those that newer exporters tell per process, so that a shared card's is the sum of its pods'."""

UNITS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "ratio": 1.0,
        "percent": 0.01,
        "bytes": 1 / 2**20,
        "mebibytes": 1.0,
        "watts": 1.0,
        "joules": 1.0,
        "millijoules": 1e-3,
        "microjoules": 1e-6,
        "celsius": 1.0,
        "code": 1.0,
        "count": 1.0,
    }
)
"""By what a value in an exporter's unit is multiplied."""

_LARGEST_MIB: Final = 4 * 2**20
_RANGES: Final[Mapping[Quantity, tuple[float, float]]] = {
    # An exporter's rounding may show slightly more than all.
    Quantity.UTILISATION: (0.0, 1.01),
    Quantity.MEMORY_USED: (0.0, _LARGEST_MIB),
    Quantity.MEMORY_FREE: (0.0, _LARGEST_MIB),
    Quantity.MEMORY_RESERVED: (0.0, _LARGEST_MIB),
    Quantity.MEMORY_TOTAL: (1.0, _LARGEST_MIB),
    Quantity.SM_OCCUPANCY: (0.0, 1.01),
    Quantity.POWER: (0.0, 20_000.0),
    Quantity.ENERGY: (0.0, 1e13),
    Quantity.TEMPERATURE: (-50.0, 200.0),
    Quantity.XID: (0.0, 1000.0),
    Quantity.UNCORRECTABLE_ERRORS: (0.0, 1e9),
}


def limits(quantity: Quantity) -> tuple[float, float]:
    """Return the lowest and the highest value that can have been measured."""
    return _RANGES[quantity]


def is_measurement(quantity: Quantity, value: float) -> bool:
    """Tell whether a value can have been measured: a finite number within the range."""
    low, high = _RANGES[quantity]
    return math.isfinite(value) and low <= value <= high
