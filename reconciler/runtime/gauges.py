# SPDX-License-Identifier: Apache-2.0
"""A set of gauges' series that is shown as a whole: those that are gone are taken away."""

from collections.abc import Mapping
from typing import TypeAlias

from reconciler.runtime.metrics import Metrics

Series: TypeAlias = tuple[str, tuple[str, ...]]
"""A metric's name and the values of its labels."""


class ShownGauges:
    """The series that one who knows them all shows; nobody else may show series of theirs."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._shown: dict[Series, float] = {}

    def show(self, series: Mapping[Series, float]) -> None:
        """Show these and no others; touch only what differs, since there may be thousands."""
        for name, labels in self._shown.keys() - series.keys():
            self._metrics.gauge(name).remove(*labels)
        for (name, labels), value in series.items():
            if self._shown.get((name, labels)) != value:
                self._metrics.gauge(name).labels(*labels).set(value)
        self._shown = dict(series)
