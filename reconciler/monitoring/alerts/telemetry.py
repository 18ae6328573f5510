# SPDX-License-Identifier: Apache-2.0
"""Alerts on what is not known of cards: exporters that are gone, telemetry that is old."""

from typing import Final

from reconciler.monitoring.rules import Alert, Group, Level, Severity

_UNSEEN: Final = "cluster:sluice_cards_unseen:count"

TELEMETRY: Final = Group(
    "sluice-telemetry-alerts",
    (
        Alert(
            "SluiceExporterGone",
            Level.NODE,
            Severity.WARNING,
            "10m",
            # Where a node was taken out of the cluster no more cards are unseen than before.
            "last_over_time(node:sluice_cards:count[1h])\n"
            "unless on (node) node:sluice_cards:count\n"
            f"and on () {_UNSEEN} > min_over_time({_UNSEEN}[1h])",
            "The exporter of node {{ $labels.node }} is gone",
            "It told of {{ $value }} cards within the last hour and tells nothing now, while more "
            "of the cluster's GPUs than before have nobody that tells of them. Load and measured "
            "memory of the node are not looked at.",
        ),
        Alert(
            "SluiceCardsUnseen",
            Level.NODE,
            Severity.INFO,
            "30m",
            f"{_UNSEEN} >= 1\nand on () sum(node:sluice_cards:count) > 0",
            "{{ $value }} GPUs have no exporter that tells of them",
            "The cluster's nodes offer so many GPUs more than exporters tell of. Placement goes by "
            "the count of devices there.",
        ),
        Alert(
            "SluiceTelemetryStale",
            Level.NODE,
            Severity.WARNING,
            "10m",
            'max by (instance) (sluice_telemetry_nodes{state="Stale"}) > 0',
            "Sluice's telemetry of {{ $value }} nodes is old",
            "{{ $labels.instance }} knew what the cards of {{ $value }} nodes do, and does not "
            "now. Their load is taken for unknown.",
        ),
        Alert(
            "SluiceTelemetryFailing",
            Level.SLUICE,
            Severity.WARNING,
            "10m",
            "sum by (instance, source) "
            '(increase(sluice_telemetry_looks_total{result="Failure"}[10m])) > 0\n'
            "unless on (instance, source) sum by (instance, source) "
            '(increase(sluice_telemetry_looks_total{result=~"Success|Partial"}[10m])) > 0',
            "Sluice cannot read its telemetry from {{ $labels.source }}",
            "{{ $labels.instance }} asked {{ $value | humanize }} times in 10 minutes and got "
            "nothing: no node's load is known.",
        ),
    ),
)
