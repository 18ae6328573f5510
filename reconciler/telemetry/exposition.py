# SPDX-License-Identifier: Apache-2.0
"""Samples from an exporter's page in the text format, without parsing what is not of interest.

Labels are parsed by prometheus-client, once: an exporter writes the same ones again in every line
of a card and in every page. Source: Prometheus, "Exposition formats", text format 0.0.4.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from policies.telemetry.names import Exporter, Metric
from policies.telemetry.samples import Sample, Subject

ACCEPT: Final = "text/plain;version=0.0.4;q=1,*/*;q=0.1"
_MILLIS: Final = 1000.0
_FIELDS: Final = 2
"""A value, and maybe a timestamp."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says; `malformed` counts lines of interest that could not be understood."""

    samples: tuple[Sample, ...]
    malformed: int = 0


@dataclass(slots=True)
class Memory:
    """What the labels of an exporter's last page were; as large as that page."""

    subjects: dict[bytes, Subject | None] = field(default_factory=dict)


class PageReader:
    """Reads the pages of some exporters. `node` is known where the exporter's pod is."""

    def __init__(self, exporters: Iterable[Exporter]) -> None:
        self._metrics: Mapping[bytes, Metric] = {
            metric.name.encode(): metric for each in exporters for metric in each.metrics
        }

    def read(self, page: bytes, time: float, node: str, memory: Memory) -> Page:
        """Return a page's samples; those without a time of their own are of `time` (Unix s)."""
        samples: list[Sample] = []
        seen: dict[bytes, Subject | None] = {}
        malformed = 0
        for line in page.split(b"\n"):
            brace = line.find(b"{")
            metric = self._metrics.get(line[:brace]) if brace > 0 else None
            if metric is None:
                continue
            try:
                sample = _sample(line, brace, metric, (time, node), (memory.subjects, seen))
            except ValueError:
                malformed += 1
                continue
            if sample is not None:
                samples.append(sample)
        memory.subjects = seen
        return Page(tuple(samples), malformed)


def _sample(
    line: bytes,
    brace: int,
    metric: Metric,
    scrape: tuple[float, str],
    memory: tuple[Mapping[bytes, Subject | None], dict[bytes, Subject | None]],
) -> Sample | None:
    """Return what a line says; ValueError for one that is cut off or otherwise no sample."""
    end = line.rfind(b"}")
    fields = line[end + 1 :].split()
    if end < brace or not 1 <= len(fields) <= _FIELDS:
        raise ValueError("neither a value nor a value with a timestamp")
    labels = line[brace : end + 1]
    known, seen = memory
    if labels in seen:
        subject = seen[labels]
    else:
        subject = known[labels] if labels in known else _subject(labels, metric, scrape[1])
        seen[labels] = subject
    if subject is None:
        return None
    time = float(fields[1]) / _MILLIS if len(fields) == _FIELDS else scrape[0]
    return metric.sample(subject, float(fields[0]), time)


def _subject(labels: bytes, metric: Metric, node: str) -> Subject | None:
    for family in text_string_to_metric_families(f"m{labels.decode()} 0\n"):
        for sample in family.samples:
            return metric.labels.subject(sample.labels, node)
    raise ValueError("no labels")
