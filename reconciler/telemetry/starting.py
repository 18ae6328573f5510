# SPDX-License-Identifier: Apache-2.0
"""Telemetry as a process is started with it: what flags say wins over the environment."""

import logging
import os
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.kube.client import Client
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.starting import StartError
from reconciler.telemetry.access import EXPORTER, PROMETHEUS
from reconciler.telemetry.config import TelemetryConfig, config_from_environment
from reconciler.telemetry.credentials import unusable
from reconciler.telemetry.endpoints import ExporterPods
from reconciler.telemetry.kinds import SourceKind
from reconciler.telemetry.run import Telemetry

_LOG: Final = logging.getLogger(__name__)


def telemetry_of(flags: Mapping[str, str]) -> TelemetryConfig:
    """Return what flags (by the variables that say the same) and environment ask for.

    Raises StartError, naming the variable.
    """
    try:
        return config_from_environment({**os.environ, **flags})
    except ValueError as error:
        raise StartError(str(error)) from error


def made(config: TelemetryConfig, client: Client, metrics: Metrics) -> Telemetry | None:
    """Return the telemetry of a process; None where there is no source.

    Raises StartError for a file of credentials or CAs that cannot be used, naming the variable.
    """
    if config.source is SourceKind.NONE:
        return None
    problem = next(_unusable(config), None)
    if problem is not None:
        raise StartError(problem)
    if config.source is SourceKind.SCRAPE and not all(map(_is_told_apart, config.pods)):
        _LOG.warning(
            "exporters are looked for in all namespaces and called by plain http, so that whoever "
            "may create pods can pass for one: set SLUICE_EXPORTER_NAMESPACE"
        )
    return Telemetry(client, config, metrics=metrics)


def _is_told_apart(pods: ExporterPods) -> bool:
    """Tell whether not everybody who may create pods can pass for such an exporter."""
    return bool(pods.namespace) or pods.tls


def _unusable(config: TelemetryConfig) -> Iterator[str]:
    if config.prometheus is not None:
        yield from unusable(PROMETHEUS, config.prometheus.access)
    if config.source is SourceKind.SCRAPE:
        yield from unusable(EXPORTER, config.scrape_access)
