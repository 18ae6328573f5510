# SPDX-License-Identifier: Apache-2.0
"""Samples from the HTTP API of Prometheus, or of what answers like it (Thanos, Mimir, ...).

Each metric is asked for as a range of raw samples (`metric[90s]`): such an answer holds values with
the times at which they were scraped, where an instant one repeats a value for five minutes under
the time of the question. So a query must be a selector; an expression has no time of its own.
"""

import asyncio
import logging
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

import orjson

from policies.telemetry.names import EXPORTERS, Metric, exporters
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample
from reconciler.telemetry.access import HttpAccess
from reconciler.telemetry.http import Answer, Http, HttpLimits, checked_url
from reconciler.telemetry.source import Report, SourceError, Take

_LOG: Final = logging.getLogger(__name__)
_SERIES_A_TURN: Final = 256
"""After so many series other work of the process gets its turn."""
_REMEMBERED_WARNINGS: Final = 100


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """Where and what to ask. Raises ValueError for what cannot be asked.

    `matchers` narrow every query (`cluster="a"`); `queries` replace the selector of a metric by its
    name. `range_seconds` is how far back an answer reaches; what is older counts for gone. Only
    metrics of `quantities` are asked for, if they are given.
    """

    url: str
    access: HttpAccess = field(default_factory=HttpAccess)
    exporters: tuple[str, ...] = EXPORTERS
    matchers: str = ""
    queries: Mapping[str, str] = field(default_factory=dict)
    range_seconds: float = 90.0
    limits: HttpLimits = field(default_factory=HttpLimits)
    concurrency: int = 2
    quantities: frozenset[Quantity] | None = None

    def __post_init__(self) -> None:
        checked_url(self.url, "the address of Prometheus")
        if not 0 < self.range_seconds < math.inf or self.concurrency < 1:
            raise ValueError("the range of queries and their number at once must be above 0")
        known = {metric.name for each in exporters(self.exporters) for metric in each.metrics}
        for name in self.queries:
            if name not in known:
                raise ValueError(f"{name!r} is no metric that Sluice reads")


class Prometheus:
    """One server. Use `http` as an async context manager around it."""

    def __init__(self, settings: PrometheusSettings, http: Http) -> None:
        self._settings = settings
        self._http = http
        self._endpoint = f"{checked_url(settings.url, 'the address')}/api/v1/query"
        self._metrics = tuple(
            metric
            for each in exporters(settings.exporters)
            for metric in each.metrics
            if settings.quantities is None or metric.quantity in settings.quantities
        )
        self._warned: set[str] = set()

    @property
    def name(self) -> str:
        """The source's name."""
        return "prometheus"

    @property
    def is_by_node(self) -> bool:
        """Return False: exporters do not agree on the label of the node."""
        return False

    async def read(self, nodes: AbstractSet[str], take: Take) -> Report:  # noqa: ARG002 - all come
        """Ask for every metric, a few at once. Raises SourceError if none was answered."""
        errors: list[SourceError] = []
        malformed = 0
        waiting = iter(self._metrics)

        async def work() -> None:
            nonlocal malformed
            for metric in waiting:
                try:
                    found = await self._ask(metric, take)
                except SourceError as error:
                    errors.append(error)
                    continue
                malformed += found

        await asyncio.gather(*(work() for _ in range(self._settings.concurrency)))
        if len(errors) == len(self._metrics):
            raise errors[0]
        return Report(tuple(sorted({str(error) for error in errors})), malformed)

    def query(self, metric: Metric) -> str:
        """Return what is asked for a metric."""
        selector = self._settings.queries.get(metric.name)
        if selector is None:
            matchers = self._settings.matchers
            selector = f"{metric.name}{{{matchers}}}" if matchers else metric.name
        return f"{selector}[{round(self._settings.range_seconds * 1000)}ms]"

    async def _ask(self, metric: Metric, take: Take) -> int:
        # The server should give up when we do.
        seconds = f"{self._settings.limits.seconds:g}s"
        form = {"query": self.query(metric), "timeout": seconds}
        answer = await self._http.post(self._endpoint, form)
        content = _object(answer)
        if not answer.is_success or content.get("status") != "success":
            raise _refusal(answer, content, metric)
        self._warn(content)
        data = content.get("data")
        series = data.get("result") if isinstance(data, dict) else None
        if (
            not isinstance(data, dict)
            or data.get("resultType") != "matrix"
            or not isinstance(series, list)
        ):
            raise SourceError(f"{metric.name}: the answer holds no range of samples")
        return await _take_up(series, metric, take)

    def _warn(self, content: Mapping[str, object]) -> None:
        """Log each warning (such as of a store that did not answer) once."""
        for kind in ("warnings", "infos"):
            texts = content.get(kind)
            for text in texts if isinstance(texts, list) else ():
                if str(text) not in self._warned and len(self._warned) < _REMEMBERED_WARNINGS:
                    self._warned.add(str(text))
                    _LOG.warning("Prometheus warns: %s", text)


def _object(answer: Answer) -> Mapping[str, object]:
    try:
        content = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        content = None
    if isinstance(content, dict):
        return content
    if answer.is_success:
        raise SourceError("the answer is no JSON object, or only a part of one")
    return {}


def _refusal(answer: Answer, content: Mapping[str, object], metric: Metric) -> SourceError:
    said = content.get("error") or answer.excerpt or "without a word"
    return SourceError(
        f"{metric.name}: status {answer.status}: {said}",
        retry_after_seconds=answer.retry_after_seconds,
    )


async def _take_up(series: list[object], metric: Metric, take: Take) -> int:
    """Hand over each series' newest sample; return how many could not be understood."""
    malformed = 0
    for first in range(0, len(series), _SERIES_A_TURN):
        samples: list[Sample] = []
        for each in series[first : first + _SERIES_A_TURN]:
            try:
                sample = _sample(each, metric)
            except (TypeError, ValueError, KeyError, IndexError, AttributeError):
                malformed += 1
                continue
            if sample is not None:
                samples.append(sample)
        take(samples)
        await asyncio.sleep(0)
    return malformed


def _sample(series: object, metric: Metric) -> Sample | None:
    """Return the newest sample of a series of a matrix.

    Source: Prometheus, querying/api: `{"metric": {...}, "values": [[<seconds>, "<value>"], ...]}`.
    """
    if not isinstance(series, dict):
        raise TypeError("a series is an object")
    # A series of native histograms has no values.
    time, value = series["values"][-1]
    subject = metric.labels.subject(series["metric"])
    return None if subject is None else metric.sample(subject, float(value), float(time))
