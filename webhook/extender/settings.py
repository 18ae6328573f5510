# SPDX-License-Identifier: Apache-2.0
"""How the extender is set up, from the environment: how nodes are judged, and telemetry."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.placement.settings import PlacementSettings, placement_from_environment
from reconciler.telemetry.config import TelemetryConfig, config_from_environment


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    """All of it: how answers are made, and where telemetry comes from."""

    placement: PlacementSettings = field(default_factory=PlacementSettings)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)


def settings_from_environment(environ: Mapping[str, str]) -> ExtenderSettings:
    """Return what the environment asks for. Raises ValueError, naming the variable."""
    return ExtenderSettings(placement_from_environment(environ), config_from_environment(environ))
