# SPDX-License-Identifier: Apache-2.0
"""What nodes and their cards do, by exporters; the busiest, since there may be thousands."""

from typing import Final

from reconciler.monitoring.dashboard.panels import Kind, Panel, Query, Row, Unit, lines

_MEMORY: Final = "card:sluice_memory_used:mib / (card:sluice_memory_total:mib > 0)"
_CARD: Final = "{{node}} {{card}} {{mig}}"

CARDS: Final = Row(
    "Nodes and cards",
    (
        lines(
            "Load of nodes",
            "topk(10, node:sluice_load:ratio)",
            "{{node}}",
            Unit.RATIO,
            "Mean of a node's cards: 0.7 utilisation, 0.3 memory.",
        ),
        lines("Load of cards", "topk(10, card:sluice_load:ratio)", _CARD, Unit.RATIO),
        lines("Memory of nodes", "topk(10, node:sluice_memory_used:ratio)", "{{node}}", Unit.RATIO),
        lines("Memory of cards", f"topk(10, {_MEMORY})", _CARD, Unit.RATIO),
        lines(
            "Temperature",
            "topk(10, card:sluice_temperature:celsius)",
            "{{node}} {{card}}",
            Unit.CELSIUS,
        ),
        lines("Power", "sum by (node) (card:sluice_power:watts)", "{{node}}", Unit.WATTS),
        Panel(
            "Cards that pods share",
            Kind.TABLE,
            Unit.NUMBER,
            (
                Query("topk(20, card:sluice_pods:count > 1)", "Pods"),
                Query("card:sluice_load:ratio and card:sluice_pods:count > 1", "Load"),
            ),
            width=12,
        ),
        Panel(
            "Pods that use least",
            Kind.TABLE,
            Unit.RATIO,
            (Query("bottomk(20, workload:sluice_utilisation:ratio)", "Utilisation"),),
            "Utilisation of the cards that a pod has, whoever makes it.",
            width=12,
        ),
    ),
)
