# SPDX-License-Identifier: Apache-2.0
"""What exporters call their metrics and labels, read from data; from labels to subjects.

Exposition formats and query languages must not be here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from policies.telemetry.quantities import UNITS, Quantity
from policies.telemetry.samples import PodName, Sample, Subject

EXPORTERS: Final = ("dcgm", "amd", "hami")
"""The files, in the order of preference where two exporters show the same card."""

_RANKS_EACH: Final = 100
_MAX_INDEX_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Discovery:
    """How an exporter's pods are found: label selectors, then a named port, else the number."""

    selectors: tuple[str, ...]
    port_names: tuple[str, ...]
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class Labels:
    """Label names by meaning; the first that a series has counts.

    `own_containers` are the exporter's own: a Prometheus that does not honour an exporter's labels
    gives idle cards the exporter's pod. So it does, without a namespace, where labels are empty.
    """

    node: tuple[str, ...]
    uuid: tuple[str, ...]
    index: tuple[str, ...]
    instance: tuple[str, ...]
    profile: tuple[str, ...]
    namespace: tuple[str, ...]
    pod: tuple[str, ...]
    container: tuple[str, ...]
    own_containers: tuple[str, ...]

    def subject(self, labels: Mapping[str, str], node: str = "") -> Subject | None:
        """Return what a series is of; None without a node or a card. `node`, if given, is known."""
        node = node or _first(labels, self.node)
        uuid = _first(labels, self.uuid)
        index = _index(_first(labels, self.index))
        if not node or not (uuid or index is not None):
            return None
        instance = _first(labels, self.instance)
        return Subject(node, uuid, index, instance, _first(labels, self.profile), self._pod(labels))

    def _pod(self, labels: Mapping[str, str]) -> PodName | None:
        name, container = _first(labels, self.pod), _first(labels, self.container)
        namespace = _first(labels, self.namespace)
        if not name or not namespace or container in self.own_containers:
            return None
        return PodName(namespace, name, container)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of an exporter. `factor` turns its values into the quantity's unit."""

    name: str
    quantity: Quantity
    factor: float
    rank: int
    whole_cards_only: bool
    labels: Labels

    def sample(self, subject: Subject, value: float, time: float) -> Sample | None:
        """Return the sample; None where the metric means nothing for a MIG instance."""
        if self.whole_cards_only and subject.instance:
            return None
        return Sample(self.quantity, subject, value * self.factor, time, self.rank)


@dataclass(frozen=True, slots=True)
class Exporter:
    """All that is known of one exporter."""

    name: str
    discovery: Discovery
    labels: Labels
    metrics: tuple[Metric, ...]


@lru_cache(maxsize=8)  # the few choices of exporters that a process makes
def exporters(names: tuple[str, ...] = EXPORTERS) -> tuple[Exporter, ...]:
    """Return these exporters. The data is shipped, so a fault in it is a bug.

    Raises ValueError for a name that there is no file of.
    """
    unknown = sorted(set(names) - set(EXPORTERS))
    if unknown:
        raise ValueError(f"no exporter is called {unknown[0]!r}; there are {', '.join(EXPORTERS)}")
    return tuple(_exporter(read_data(name), EXPORTERS.index(name)) for name in names)


def read_data(name: str) -> Mapping[str, Any]:
    """Return a file of the data folder, by its name without the ending."""
    file = resources.files("policies.telemetry").joinpath("data", f"{name}.json")
    content: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def _exporter(data: Mapping[str, Any], order: int) -> Exporter:
    labels = Labels(**{key: tuple(value) for key, value in data["labels"].items()})
    found = data["discovery"]
    discovery = Discovery(
        tuple(found["selectors"]), tuple(found["port_names"]), found["port"], found["path"]
    )
    metrics = tuple(
        Metric(
            raw["name"],
            Quantity(raw["quantity"]),
            UNITS[raw["unit"]],
            order * _RANKS_EACH + number,
            raw.get("whole_cards_only", False),
            labels,
        )
        for number, raw in enumerate(data["metrics"])
    )
    return Exporter(data["exporter"], discovery, labels, metrics)


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if value := labels.get(name):
            return value
    return ""


def _index(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_INDEX_DIGITS
    return int(text) if is_number else None
