# SPDX-License-Identifier: Apache-2.0
"""Tells metrics what the GPUs of each model come to. Which metrics there are: metric_specs.

What the figures mean is defined in policies/placement/figures.py.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from policies.placement.figures import ModelFigures, NodeFigures, by_model
from policies.telemetry.summary import mean
from reconciler.runtime.controller_metrics import OTHERS
from reconciler.runtime.gauges import Series, ShownGauges
from reconciler.runtime.metrics import Metrics

MOST_MODELS: Final = 100
"""Nodes' labels name models; so many have a series of their own."""


class ModelGauges:
    """Shows the models that there are, and none that are gone."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauges = ShownGauges(metrics)
        self._models: set[str] = set()

    def show(
        self, nodes: Iterable[NodeFigures], utilisations: Mapping[str, Iterable[float]]
    ) -> None:
        """Show all nodes by model. `utilisations` are those, from 0 to 1, of the cards by node."""
        labelled = [replace(node, model=self._label(node.model)) for node in nodes]
        busy: dict[str, list[float]] = defaultdict(list)
        for node in labelled:
            busy[node.model].extend(utilisations.get(node.name, ()))
        series: dict[Series, float] = {}
        for model, figures in by_model(labelled).items():
            for name, value in _values(figures, mean(busy[model])).items():
                if value is not None:
                    series[name, (model,)] = value
        self._gauges.show(series)

    def clear(self) -> None:
        """Show nothing."""
        self._gauges.show({})

    def _label(self, model: str) -> str:
        if model in self._models or len(self._models) < MOST_MODELS:
            self._models.add(model)
            return model
        return OTHERS


def _values(figures: ModelFigures, utilisation: float | None) -> Mapping[str, float | None]:
    return {
        "sluice_gpus_capacity_milli": figures.capacity_milli,
        "sluice_gpus_allocated_milli": figures.allocated_milli,
        "sluice_gpu_fragmentation_milli": figures.fragmented_milli,
        "sluice_gpu_memory_stranded_mib": figures.stranded_mib,
        "sluice_gpu_utilisation_ratio": utilisation,
    }
