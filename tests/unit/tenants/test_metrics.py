# SPDX-License-Identifier: Apache-2.0
"""What metrics show of tenants."""

from policies.quota.figures import figures
from policies.quota.metering import Key
from reconciler.runtime.metrics import Metrics
from reconciler.tenants.metrics import TenantGauges, gpu_seconds
from tests.support.planning import World, node, tenant


def gauge(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_metrics_show_every_pool_and_forget_tenants_that_are_gone() -> None:
    world, metrics = World([tenant("chat", 2, 4)], [node("n")]), Metrics()
    world.run("chat", 3)
    world.set_tenants([tenant("chat", 2, 4), tenant("rare", 9)])
    world.wait("chat", 2, created_at=world.now - 90)
    world.plan()
    gauges = TenantGauges(metrics, lambda name: name)
    gauges.show(world.state, figures(world.state, world.now), world.now)
    assert gauge(metrics, "sluice_tenant_used_gpus", tenant="chat", pool="") == 3
    assert gauge(metrics, "sluice_tenant_borrowed_gpus", tenant="chat", pool="") == 1
    assert gauge(metrics, "sluice_tenant_ceiling_gpus", tenant="rare", pool="") is None
    assert gauge(metrics, "sluice_tenant_pending_pods", tenant="chat") == 1
    assert gauge(metrics, "sluice_tenant_oldest_wait_seconds", tenant="chat") == 90
    assert gauge(metrics, "sluice_overcommitted_gpus", pool="") == 3
    assert gauge(metrics, "sluice_odd_pods", kind="SkippedGate") == 0

    world.set_tenants([tenant("chat", 2, 4)])
    gauges.show(world.state, figures(world.state, world.now), world.now)
    assert gauge(metrics, "sluice_tenant_guarantee_gpus", tenant="rare", pool="") is None
    assert gauge(metrics, "sluice_overcommitted_gpus", pool="") == 0
    gauges.clear()
    assert gauge(metrics, "sluice_tenant_used_gpus", tenant="chat", pool="") is None


def test_tenants_under_one_label_are_summed() -> None:
    world, metrics = World([tenant("a", 1), tenant("b", 2)], [node("n")]), Metrics()
    world.wait("a", created_at=world.now - 30)
    world.wait("b", created_at=world.now - 60)
    gauges = TenantGauges(metrics, lambda _name: "others")
    gauges.show(world.state, figures(world.state, world.now), world.now)
    assert gauge(metrics, "sluice_tenant_guarantee_gpus", tenant="others", pool="") == 3
    assert gauge(metrics, "sluice_tenant_pending_pods", tenant="others") == 2
    assert gauge(metrics, "sluice_tenant_oldest_wait_seconds", tenant="others") == 60


def test_gpu_seconds_are_counted_whole() -> None:
    metrics = Metrics()
    count = gpu_seconds(metrics, lambda name: name)
    count(Key("chat", "", "MIG"), 1_500_000)
    count(Key("chat", "", "MIG"), 500_000)
    labels = {"tenant": "chat", "pool": "", "mode": "MIG"}
    assert gauge(metrics, "sluice_gpu_seconds_total", **labels) == 2
