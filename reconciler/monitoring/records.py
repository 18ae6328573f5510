# SPDX-License-Identifier: Apache-2.0
"""The recording rules, by what they are about: cards, nodes, workloads, models, tenants, Sluice.

Gauges of tenants and models come from the leader alone; `max` bridges the moment in which two
processes show them.
"""

from typing import Final

from policies.telemetry.load import DEFAULT_WEIGHTS
from policies.telemetry.quantities import Quantity
from reconciler.monitoring.exporters import WORKLOAD, measured
from reconciler.monitoring.rules import Group, Record

_TOTAL: Final = f"""\
(
{measured(Quantity.MEMORY_TOTAL)}
)
or
(
  card:sluice_memory_used:mib
  + ({measured(Quantity.MEMORY_FREE)})
  + (({measured(Quantity.MEMORY_RESERVED)}) or 0 * card:sluice_memory_used:mib)
)"""


def _p99(histogram: str, label: str) -> str:
    """Return the 99th percentile; nothing while nothing happens, for then there is none."""
    return (
        f"histogram_quantile(0.99, sum by ({label}, le) (rate({histogram}_bucket[5m])))\n"
        f"and on ({label}) sum by ({label}) (rate({histogram}_count[5m])) > 0"
    )


CARDS: Final = Group(
    "sluice-cards",
    (
        Record(
            "workload_card:sluice_utilisation:ratio",
            measured(Quantity.UTILISATION, WORKLOAD),
            "How busy a card is, for each pod that has it; without a pod if none has.",
        ),
        Record(
            "card:sluice_utilisation:ratio",
            "max by (node, card, mig) (workload_card:sluice_utilisation:ratio)",
            "How busy a card or a MIG instance is, from 0 to 1.",
        ),
        Record(
            "card:sluice_pods:count",
            'count by (node, card, mig) (workload_card:sluice_utilisation:ratio{pod!="",own=""})',
            "Pods that have a card; no series where it is nobody's.",
        ),
        Record(
            "card:sluice_memory_used:mib",
            measured(Quantity.MEMORY_USED),
            "Used memory of a card or a MIG instance.",
        ),
        Record(
            "card:sluice_memory_total:mib",
            _TOTAL,
            "All memory of a card: as told, else what is used, free and reserved.",
        ),
        Record(
            "card:sluice_load:ratio",
            f"{DEFAULT_WEIGHTS.utilisation} * clamp_max(card:sluice_utilisation:ratio, 1)\n"
            f"+ {DEFAULT_WEIGHTS.memory} * clamp_max(\n"
            "  card:sluice_memory_used:mib / (card:sluice_memory_total:mib > 0), 1\n)",
            "The load by which the extender places; no series while a part of it is unknown.",
        ),
        Record(
            "card:sluice_temperature:celsius",
            measured(Quantity.TEMPERATURE, ("node", "card")),
            "How hot a card is.",
        ),
        Record(
            "card:sluice_uncorrectable_errors:count",
            measured(Quantity.UNCORRECTABLE_ERRORS, ("node", "card")),
            "Errors of a card's memory that could not be corrected, since it was last reset.",
        ),
        Record(
            "card:sluice_power:watts",
            measured(Quantity.POWER, ("node", "card")),
            "What a card draws.",
        ),
    ),
)

NODES: Final = Group(
    "sluice-nodes",
    (
        Record(
            "node:sluice_cards:count",
            "count by (node) (group by (node, card) (card:sluice_memory_used:mib))",
            "Cards of a node that exporters tell of.",
        ),
        Record(
            "cluster:sluice_cards_unseen:count",
            "sum(max by (model) (sluice_gpus_capacity_milli)) / 1000\n"
            "- (sum(node:sluice_cards:count) or vector(0))",
            "GPUs that nodes offer beyond those that exporters tell of.",
        ),
        Record(
            "node:sluice_load:ratio",
            "avg by (node) (card:sluice_load:ratio)",
            "The mean load of a node's cards that are known.",
        ),
        Record(
            "node:sluice_memory_used:ratio",
            "sum by (node) (card:sluice_memory_used:mib)\n"
            "/ (sum by (node) (card:sluice_memory_total:mib) > 0)",
            "Used memory of a node's cards, of all that they have.",
        ),
    ),
)

WORKLOADS: Final = Group(
    "sluice-workloads",
    (
        Record(
            "workload:sluice_utilisation:ratio",
            'avg by (namespace, pod) (workload_card:sluice_utilisation:ratio{pod!="",own=""})',
            "How busy the cards of a pod are, whoever makes them so.",
        ),
    ),
)

MODELS: Final = Group(
    "sluice-models",
    (
        Record(
            "model:sluice_gpus_allocated:ratio",
            "max by (model) (sluice_gpus_allocated_milli)\n"
            "/ (max by (model) (sluice_gpus_capacity_milli) > 0)",
            "What is given to pods, of what the nodes of a model offer.",
        ),
        Record(
            "model:sluice_gpu_fragmentation:ratio",
            "max by (model) (sluice_gpu_fragmentation_milli)\n"
            "/ (max by (model) (sluice_gpus_capacity_milli) > 0)",
            "What a typical pod could not use of what is free, of all that a model offers.",
        ),
        Record(
            "model:sluice_gpu_memory_stranded:mib",
            "max by (model) (sluice_gpu_memory_stranded_mib)\n"
            "/ (max by (model) (sluice_gpus_capacity_milli) / 1000 > 0)",
            "Stranded memory for each GPU of a model.",
        ),
    ),
)

TENANTS: Final = Group(
    "sluice-tenants",
    (
        Record(
            "tenant:sluice_used:gpus",
            "sum by (tenant) (max by (tenant, pool) (sluice_tenant_used_gpus))",
            "What a tenant is charged, over all pools.",
        ),
        Record(
            "tenant:sluice_guarantee:gpus",
            "sum by (tenant) (max by (tenant, pool) (sluice_tenant_guarantee_gpus))",
            "What a tenant always gets back, over all pools.",
        ),
        Record(
            "tenant:sluice_oldest_wait:seconds",
            "max by (tenant) (sluice_tenant_oldest_wait_seconds)",
            "How long the pod of a tenant has waited that has waited the longest.",
        ),
        Record(
            "tenant:sluice_gpus:rate5m",
            "sum by (tenant) (rate(sluice_gpu_seconds_total[5m]))",
            "GPUs charged, on average over 5 minutes.",
        ),
    ),
)

SLUICE: Final = Group(
    "sluice-health",
    (
        Record(
            "sluice:reviews:rate5m",
            "sum by (phase) (rate(sluice_reviews_total[5m]))",
            "Reviews answered a second.",
        ),
        Record(
            "sluice:review_errors:ratio5m",
            "sum by (phase) (rate(sluice_internal_errors_total[5m]))\n"
            "/ (sluice:reviews:rate5m > 0)",
            "Reviews that could not be decided, of all that were answered.",
        ),
        Record(
            "sluice:review_duration_seconds:p99_5m",
            _p99("sluice_review_duration_seconds", "phase"),
            "The time within which 99 of 100 reviews are answered.",
        ),
        Record(
            "sluice:extender_duration_seconds:p99_5m",
            _p99("sluice_extender_duration_seconds", "verb"),
            "The time within which 99 of 100 of a scheduler's questions are answered.",
        ),
        Record(
            "sluice:plan_duration_seconds:p99_5m",
            _p99("sluice_plan_duration_seconds", "controller"),
            "The time within which 99 of 100 plans are made.",
        ),
    ),
)

RECORDS: Final = (CARDS, NODES, WORKLOADS, MODELS, TENANTS, SLUICE)
"""In the order of their use: of groups with no order among them the last value may be old."""
