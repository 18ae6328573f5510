# SPDX-License-Identifier: Apache-2.0
"""Telemetry as a process is started with it: what flags say wins over the environment."""

import os
from collections.abc import Mapping

from reconciler.kube.client import Client
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.starting import StartError
from reconciler.telemetry.config import TelemetryConfig, config_from_environment
from reconciler.telemetry.kinds import SourceKind
from reconciler.telemetry.run import Telemetry


def telemetry_of(flags: Mapping[str, str]) -> TelemetryConfig:
    """Return what flags (by the variables that say the same) and environment ask for.

    Raises StartError, naming the variable.
    """
    try:
        return config_from_environment({**os.environ, **flags})
    except ValueError as error:
        raise StartError(str(error)) from error


def made(config: TelemetryConfig, client: Client, metrics: Metrics) -> Telemetry | None:
    """Return the telemetry of a process; None where there is no source."""
    if config.source is SourceKind.NONE:
        return None
    return Telemetry(client, config, metrics=metrics)
