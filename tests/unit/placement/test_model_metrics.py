# SPDX-License-Identifier: Apache-2.0
"""What metrics show of models of GPUs."""

from collections.abc import Iterable

import pytest

from policies.placement.figures import FiguresTable
from policies.telemetry.samples import Subject
from policies.telemetry.smoothing import Smoothed
from policies.telemetry.views import CardTelemetry, NodeTelemetry, Values
from reconciler.placement import metrics as module
from reconciler.placement.metrics import ModelGauges
from reconciler.placement.run import show
from reconciler.runtime.metrics import Metrics
from tests.controlplane import nodes
from tests.support.builders import GPU, catalog
from tests.support.fleets import Json, example, fleet, pod, ready

H100 = "NVIDIA-H100-80GB-HBM3"
A100 = "NVIDIA-A100-SXM4-80GB"


def value(metrics: Metrics, name: str, model: str = H100) -> float | None:
    return metrics.registry.get_sample_value(name, {"model": model})


def card(node: str, busy: float | None) -> CardTelemetry:
    subject = Subject(node, "GPU-0", 0)
    used = None if busy is None else Smoothed(busy)
    return CardTelemetry(subject.node, subject.uuid, subject.index, Values(utilisation=used))


def telemetry(name: str) -> NodeTelemetry:
    """The cards of the one node are known but for one, nothing of any other."""
    known = {"h100-whole": (card(name, 0.5), card(name, 0.9), card(name, None))}
    return NodeTelemetry(name, known.get(name, ()))


async def shown(metrics: Metrics, items: Iterable[Json], gauges: ModelGauges | None = None) -> None:
    await show(
        fleet(items).model, FiguresTable(catalog()), gauges or ModelGauges(metrics), telemetry
    )


async def test_every_model_has_its_figures_and_what_is_unknown_has_no_series() -> None:
    metrics = Metrics()
    await shown(metrics, example())
    assert value(metrics, "sluice_gpus_capacity_milli") == 23250
    assert value(metrics, "sluice_gpus_allocated_milli") == 6875
    assert value(metrics, "sluice_gpu_fragmentation_milli") == pytest.approx(12734.375)
    assert value(metrics, "sluice_gpu_memory_stranded_mib") == 2 * (81559 - 40000) + 3 * (
        9984 - 4096
    )
    assert value(metrics, "sluice_gpu_utilisation_ratio") == pytest.approx(0.7)
    assert value(metrics, "sluice_gpus_allocated_milli", A100) == 1000
    assert value(metrics, "sluice_gpu_utilisation_ratio", A100) is None


async def test_a_model_whose_last_node_is_gone_has_no_series() -> None:
    metrics = Metrics()
    gauges = ModelGauges(metrics)
    await shown(metrics, example(), gauges)
    await shown(metrics, [ready(nodes.whole("a", nodes.A100, 2))], gauges)
    assert value(metrics, "sluice_gpus_capacity_milli") is None
    assert value(metrics, "sluice_gpus_capacity_milli", A100) == 2000
    assert value(metrics, "sluice_gpu_fragmentation_milli", A100) is None
    gauges.clear()
    assert value(metrics, "sluice_gpus_capacity_milli", A100) is None


async def test_models_beyond_the_bound_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_MODELS", 1)
    metrics = Metrics()
    await shown(metrics, [*example(), pod("p", "a100-whole", {GPU: 2})])
    assert value(metrics, "sluice_gpus_allocated_milli", A100) == 3000
    assert value(metrics, "sluice_gpus_capacity_milli", "others") == 8000 + 23250
    assert value(metrics, "sluice_gpus_allocated_milli", "others") == 6875
