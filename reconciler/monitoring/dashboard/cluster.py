# SPDX-License-Identifier: Apache-2.0
"""What the cluster's GPUs come to, all in all and by model."""

from typing import Final

from reconciler.monitoring.dashboard.panels import (
    Kind,
    Panel,
    Query,
    Row,
    Unit,
    lines,
    stat,
)

_MODEL: Final = 'model=~"$model"'
_TENANT: Final = 'tenant=~"$tenant"'
_OFFERED: Final = f"sum(max by (model) (sluice_gpus_capacity_milli{{{_MODEL}}}))"
_GIVEN: Final = f"sum(max by (model) (sluice_gpus_allocated_milli{{{_MODEL}}}))"

CLUSTER: Final = Row(
    "Cluster",
    (
        stat("GPUs", f"{_OFFERED} / 1000"),
        stat("Given out", f"{_GIVEN} / 1000"),
        stat("Allocation", f"{_GIVEN} / {_OFFERED}", Unit.RATIO),
        stat("Pods waiting", f"sum(max by (tenant) (sluice_tenant_pending_pods{{{_TENANT}}}))"),
        stat("Longest wait", f"max(tenant:sluice_oldest_wait:seconds{{{_TENANT}}})", Unit.SECONDS),
        stat("Leaders", "sum(sluice_leader)"),
        lines(
            "Allocation",
            f"model:sluice_gpus_allocated:ratio{{{_MODEL}}}",
            "{{model}}",
            Unit.RATIO,
            "What is given to pods, of what the nodes of a model offer.",
        ),
        lines(
            "Utilisation",
            f"max by (model) (sluice_gpu_utilisation_ratio{{{_MODEL}}})",
            "{{model}}",
            Unit.RATIO,
            "Mean of the cards of which it is known.",
        ),
        lines(
            "Fragmentation",
            f"model:sluice_gpu_fragmentation:ratio{{{_MODEL}}}",
            "{{model}}",
            Unit.RATIO,
            "What of the free GPUs a typical pod could not use, of all.",
        ),
        lines(
            "Stranded memory",
            f"max by (model) (sluice_gpu_memory_stranded_mib{{{_MODEL}}})",
            "{{model}}",
            Unit.MIB,
            "Memory of devices that are given out wholly, which their pods do not state to need.",
        ),
        Panel(
            "Cards with telemetry",
            Kind.TIME_SERIES,
            Unit.NUMBER,
            (
                Query("sum(node:sluice_cards:count)", "told of"),
                Query("cluster:sluice_cards_unseen:count", "not told of"),
            ),
            "GPUs that nodes offer, and whether an exporter tells of them.",
        ),
        lines("Telemetry", "max by (state) (sluice_telemetry_nodes)", "{{state}} nodes"),
    ),
)
