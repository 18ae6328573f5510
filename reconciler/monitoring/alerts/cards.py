# SPDX-License-Identifier: Apache-2.0
"""Alerts on cards, nodes and the pods on them, from what exporters tell.

Nothing fires of what is not known: a series that is missing has no value to compare.
"""

from typing import Final

from reconciler.monitoring.rules import Alert, Group, Level, Severity

HOT: Final = 0.8
"""The extender's own default, GPU_UTIL_THRESHOLD."""
_MEMORY_FULL: Final = 0.95
_IDLE: Final = 0.01
_TEMPERATURE_CELSIUS: Final = 85
"""Most data centre boards slow down from 87 to 93 degrees on."""

CARDS: Final = Group(
    "sluice-card-alerts",
    (
        Alert(
            "SluiceCardHot",
            Level.CARD,
            Severity.WARNING,
            "15m",
            # MIG instances do not disturb one another, and a card of one pod disturbs nobody.
            f'card:sluice_load:ratio{{mig=""}} >= {HOT}\n'
            'and on (node, card) card:sluice_pods:count{mig=""} > 1',
            "Card {{ $labels.card }} of node {{ $labels.node }} is hot, and pods share it",
            f"Its load is {{{{ $value | humanizePercentage }}}}; from {HOT:.0%} on the extender "
            "gives the node no more pods, but those that are there slow each other down.",
        ),
        Alert(
            "SluiceNodeHot",
            Level.NODE,
            Severity.WARNING,
            "30m",
            f"node:sluice_load:ratio >= {HOT}\nand on (node)\n"
            'max by (node) (card:sluice_pods:count{mig=""}) > 1',
            "All in all the shared cards of node {{ $labels.node }} are hot",
            f"The mean load of its cards is {{{{ $value | humanizePercentage }}}} ({HOT:.0%} is "
            "the most that the extender fills a node to).",
        ),
        Alert(
            "SluiceCardMemoryFull",
            Level.CARD,
            Severity.WARNING,
            "15m",
            'card:sluice_memory_used:mib{mig=""}\n'
            f'/ (card:sluice_memory_total:mib{{mig=""}} > 0) >= {_MEMORY_FULL}\n'
            'and on (node, card) card:sluice_pods:count{mig=""} > 1',
            "The memory of card {{ $labels.card }} of node {{ $labels.node }} is nearly full, and "
            "pods share it",
            "{{ $value | humanizePercentage }} of it is used. The next allocation of any of its "
            "pods may fail.",
        ),
        Alert(
            "SluiceCardTemperatureHigh",
            Level.CARD,
            Severity.WARNING,
            "10m",
            f"card:sluice_temperature:celsius >= {_TEMPERATURE_CELSIUS}",
            "Card {{ $labels.card }} of node {{ $labels.node }} has {{ $value }} degrees Celsius",
            "At some degrees more it slows itself down, and all work on it with it.",
        ),
        Alert(
            "SluiceCardMemoryFailing",
            Level.CARD,
            Severity.WARNING,
            "1m",
            "increase(card:sluice_uncorrectable_errors:count[1h]) > 0",
            "The memory of card {{ $labels.card }} of node {{ $labels.node }} is failing",
            "It had {{ $value | humanize }} errors within an hour that could not be corrected. "
            "What ran on it then has failed or is wrong.",
        ),
        Alert(
            "SluiceWorkloadIdle",
            Level.WORKLOAD,
            Severity.INFO,
            "2h",
            f"workload:sluice_utilisation:ratio < {_IDLE}",
            "Pod {{ $labels.namespace }}/{{ $labels.pod }} holds GPUs and does not use them",
            "Their utilisation is {{ $value | humanizePercentage }}, and has been below "
            f"{_IDLE:.0%} for 2 hours, while its tenant is charged for them.",
        ),
    ),
)
