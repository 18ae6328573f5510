# SPDX-License-Identifier: Apache-2.0
"""How placement is set up, from the environment. Nothing is opened here.

Flags of the command line name the same variables, so that either can be used.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.model.placement import Spreading, SpreadSettings
from policies.placement.filtering import Limits
from policies.placement.model import ModelSettings
from policies.placement.rooms import Picking
from reconciler.placement.flags import MOST_PREFERRED, PREFERRED_NODES

THRESHOLD: Final = "GPU_UTIL_THRESHOLD"
STRATEGY: Final = "SLUICE_PLACEMENT_STRATEGY"
SPREAD_ABOVE: Final = "SLUICE_SPREAD_ABOVE"
HEADROOM: Final = "SLUICE_MEMORY_HEADROOM_MIB"
ASSUME: Final = "SLUICE_ASSUME_SECONDS"
PICKING: Final = "SLUICE_DEVICE_PICKING"

_MAX_MIB: Final = 1_000_000
_MAX_ASSUME_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """How nodes are judged and ranked, by whoever does.

    `preferred_nodes` is how many of the best a pod is told to prefer when it is released, 0 for
    none: for clusters whose scheduler asks no extender.
    """

    model: ModelSettings = field(default_factory=ModelSettings)
    preferred_nodes: int = 0


def placement_from_environment(environ: Mapping[str, str]) -> PlacementSettings:
    """Return what the environment asks for. Raises ValueError, naming the variable."""
    model, spreading = ModelSettings(), SpreadSettings()
    limits = Limits(
        threshold=_share(environ, THRESHOLD, model.limits.threshold),
        headroom_mib=int(_number(environ, HEADROOM, 0, _MAX_MIB)),
    )
    return PlacementSettings(
        model=ModelSettings(
            limits=limits,
            picking=Picking(_choice(environ, PICKING, tuple(Picking), model.picking)),
            assume_seconds=_number(environ, ASSUME, model.assume_seconds, _MAX_ASSUME_SECONDS),
            spreading=SpreadSettings(
                strategy=Spreading(
                    _choice(environ, STRATEGY, tuple(Spreading), spreading.strategy)
                ),
                spread_above=_share(environ, SPREAD_ABOVE, spreading.spread_above),
            ),
        ),
        preferred_nodes=int(_number(environ, PREFERRED_NODES, 0, MOST_PREFERRED)),
    )


def _share(environ: Mapping[str, str], name: str, default: int) -> int:
    """Return thousandths of a number from 0 to 1."""
    return round(1000 * _number(environ, name, default / 1000, 1.0))


def _number(environ: Mapping[str, str], name: str, default: float, highest: float) -> float:
    text = environ.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= highest:  # no number (NaN) is in no range
        raise ValueError(f"{name} is {text!r}; it goes from 0 to {highest:g}")
    return value


def _choice(environ: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    text = environ.get(name, "").strip()
    for choice in choices:
        if choice.lower() == (text or default).lower():
            return choice
    raise ValueError(f"{name} is {text!r}; it can be one of {', '.join(choices)}")
