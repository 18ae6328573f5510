# SPDX-License-Identifier: Apache-2.0
"""How telemetry is set up: frozen values, from the environment or from flags.

Nothing is opened or read here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from policies.telemetry.classes import DEFAULT_CLASSES, SamplingClass
from policies.telemetry.freshness import Freshness
from policies.telemetry.load import LoadWeights
from policies.telemetry.names import EXPORTERS, exporters
from policies.telemetry.quantities import Quantity
from policies.telemetry.smoothing import Smoothing
from reconciler.telemetry.access import (
    EXPORTER,
    PROMETHEUS,
    HttpAccess,
    access_of,
    is_https,
    variable,
)
from reconciler.telemetry.annotations import WriterSettings
from reconciler.telemetry.declared import QUERIES, SMOOTHING, queries_of, smoothing_of
from reconciler.telemetry.endpoints import ExporterPods
from reconciler.telemetry.kinds import SourceKind
from reconciler.telemetry.prometheus import PrometheusSettings
from reconciler.telemetry.scrape import ScrapeSettings

_MIN_RANGE_SECONDS: Final = 30.0
_SCHEMES: Final = ("http", "https")


@dataclass(frozen=True, slots=True)
class TelemetryConfig:
    """All of it. `writes_annotations` is ignored where annotations are the source.

    `whole_nodes` is how old annotations may be; `skew_seconds` how much clocks may differ.
    """

    source: SourceKind = SourceKind.NONE
    prometheus: PrometheusSettings | None = None
    scrape: ScrapeSettings = field(default_factory=ScrapeSettings)
    scrape_access: HttpAccess = field(default_factory=HttpAccess)
    pods: tuple[ExporterPods, ...] = ()
    classes: tuple[SamplingClass, ...] = DEFAULT_CLASSES
    skew_seconds: float = 5.0
    whole_nodes: Freshness = field(default_factory=lambda: Freshness(300.0))
    smoothing: Mapping[Quantity, Smoothing] = field(default_factory=dict)
    weights: LoadWeights = field(default_factory=LoadWeights)
    writer: WriterSettings = field(default_factory=WriterSettings)
    writes_annotations: bool = True

    def __post_init__(self) -> None:
        if (self.source is SourceKind.PROMETHEUS) != (self.prometheus is not None):
            raise ValueError("Prometheus' settings are for the source Prometheus, which needs them")
        if not self.classes:
            raise ValueError("there must be a sampling class")


_VARIABLES: Final = {
    "source": "SLUICE_TELEMETRY_SOURCE",
    "url": "PROMETHEUS_URL",
    "matchers": "PROMETHEUS_MATCHERS",
    "exporters": "SLUICE_TELEMETRY_EXPORTERS",
    "selector": "SLUICE_EXPORTER_SELECTOR",
    "namespace": "SLUICE_EXPORTER_NAMESPACE",
    "port": "SLUICE_EXPORTER_PORT",
    "scheme": "SLUICE_EXPORTER_SCHEME",
    "inference": "SLUICE_SAMPLING_INFERENCE_SECONDS",
    "training": "SLUICE_SAMPLING_TRAINING_SECONDS",
    "utilisation_weight": "GPU_UTIL_WEIGHT",
    "queries": QUERIES,
    "smoothing": SMOOTHING,
}


def config_from_environment(environ: Mapping[str, str]) -> TelemetryConfig:
    """Return what the environment asks for. Raises ValueError, naming the variable.

    Without SLUICE_TELEMETRY_SOURCE a PROMETHEUS_URL makes it the source; else there is none.
    """
    given = {key: environ.get(name, "").strip() for key, name in _VARIABLES.items()}
    source = _source(given)
    names = tuple(part.strip() for part in given["exporters"].split(",") if part.strip())
    names = names or EXPORTERS
    classes = tuple(_class(each, given) for each in DEFAULT_CLASSES)
    # Without an address nothing is called, by whatever scheme.
    reached = access_of(PROMETHEUS, environ, is_tls=not given["url"] or is_https(given["url"]))
    is_prometheus = source is SourceKind.PROMETHEUS
    return TelemetryConfig(
        source=source,
        prometheus=_prometheus(given, reached, names, classes) if is_prometheus else None,
        scrape=ScrapeSettings(exporters=names),
        scrape_access=_scrape_access(given, environ),
        pods=_pods(given, names),
        classes=classes,
        smoothing=smoothing_of(given["smoothing"]),
        weights=_weights(given),
        writes_annotations=source is not SourceKind.ANNOTATIONS,
    )


def _source(given: Mapping[str, str]) -> SourceKind:
    text = given["source"]
    if not text:
        return SourceKind.PROMETHEUS if given["url"] else SourceKind.NONE
    for kind in SourceKind:
        if kind.lower() == text.lower():
            return kind
    choices = ", ".join(SourceKind)
    raise ValueError(f"{_VARIABLES['source']} is {text!r}; it can be one of {choices}")


def _prometheus(
    given: Mapping[str, str],
    access: HttpAccess,
    names: tuple[str, ...],
    classes: tuple[SamplingClass, ...],
) -> PrometheusSettings:
    if not given["url"]:
        raise ValueError(f"the source Prometheus needs {_VARIABLES['url']}")
    longest = max(each.freshness(0.0).max_age_seconds for each in classes)
    return PrometheusSettings(
        given["url"],
        access,
        exporters=names,
        matchers=given["matchers"],
        queries=queries_of(given["queries"]),
        range_seconds=max(_MIN_RANGE_SECONDS, longest),
    )


def _scrape_access(given: Mapping[str, str], environ: Mapping[str, str]) -> HttpAccess:
    access = access_of(EXPORTER, environ, is_tls=_is_tls(given))
    secret = "token_file" if access.token_file else "username" if access.username else ""
    if secret and not _is_tls(given):
        # Who may make pods with the labels of exporters would be told it.
        raise ValueError(f"{variable(EXPORTER, secret)} needs {_VARIABLES['scheme']}=https")
    return access


def _is_tls(given: Mapping[str, str]) -> bool:
    scheme = given["scheme"].lower() or _SCHEMES[0]
    if scheme not in _SCHEMES:
        choices = ", ".join(_SCHEMES)
        raise ValueError(
            f"{_VARIABLES['scheme']} is {given['scheme']!r}; it can be one of {choices}"
        )
    return scheme == "https"


def _pods(given: Mapping[str, str], names: tuple[str, ...]) -> tuple[ExporterPods, ...]:
    port = given["port"]
    if port and not (port.isascii() and port.isdigit()):
        raise ValueError(f"{_VARIABLES['port']} is {port!r}, which is no port")
    selectors = (given["selector"],) if given["selector"] else ()
    return tuple(
        ExporterPods(each, selectors, given["namespace"], int(port or 0), _is_tls(given))
        for each in exporters(names)
    )


def _class(sampling: SamplingClass, given: Mapping[str, str]) -> SamplingClass:
    text = given[sampling.name]
    return replace(sampling, interval_seconds=_seconds(sampling.name, text)) if text else sampling


def _weights(given: Mapping[str, str]) -> LoadWeights:
    text = given["utilisation_weight"]
    if not text:
        return LoadWeights()
    value = _number(text)
    if value is None or not 0 <= value <= 1:
        raise ValueError(f"{_VARIABLES['utilisation_weight']} is {text!r}; it goes from 0 to 1")
    return LoadWeights(value, 1 - value)


def _seconds(key: str, text: str) -> float:
    value = _number(text)
    if value is None or value <= 0:
        raise ValueError(f"{_VARIABLES[key]} is {text!r}, which is no number of seconds above 0")
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
