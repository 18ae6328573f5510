# SPDX-License-Identifier: Apache-2.0
"""What is not known of cards."""

from typing import Final

from tests.integration.monitoring.cases.case import Case

_OFFER_2: Final = {'sluice_gpus_capacity_milli{model="H100"}': "2000x400"}
_TWO_NODES: Final = {
    'DCGM_FI_DEV_FB_USED{Hostname="n1",UUID="GPU-a"}': "1000x400",
    'DCGM_FI_DEV_FB_USED{Hostname="n2",UUID="GPU-b"}': "1000x10 stale",
}
_BOTH_NODES: Final = {
    'DCGM_FI_DEV_FB_USED{Hostname="n1",UUID="GPU-a"}': "1000x400",
    'DCGM_FI_DEV_FB_USED{Hostname="n2",UUID="GPU-b"}': "1000x400",
}
_LOOKS: Final = 'sluice_telemetry_looks_total{{instance="s1",source="Prometheus",result="{}"}}'

TELEMETRY: Final = (
    Case(
        "SluiceExporterGone",
        {**_TWO_NODES, **_OFFER_2},
        30,
        {"node": "n2"},
        "The exporter of node n2 is gone",
        "It told of 1 cards within the last hour and tells nothing now, while more of the "
        "cluster's GPUs than before have nobody that tells of them. Load and measured memory of "
        "the node are not looked at.",
        (
            # The node was taken out of the cluster.
            {**_TWO_NODES, 'sluice_gpus_capacity_milli{model="H100"}': "2000x10 1000x400"},
            # Likewise, beside nodes that never had an exporter.
            {**_TWO_NODES, 'sluice_gpus_capacity_milli{model="H100"}': "9000x10 8000x400"},
            {**_BOTH_NODES, **_OFFER_2},
            _TWO_NODES,
        ),
        recalls=True,
    ),
    Case(
        "SluiceExporterGone",
        {'DCGM_FI_DEV_FB_USED{Hostname="n2",UUID="GPU-b"}': "1000x10 stale", **_OFFER_2},
        30,
        {"node": "n2"},
        "The exporter of node n2 is gone",
        "It told of 1 cards within the last hour and tells nothing now, while more of the "
        "cluster's GPUs than before have nobody that tells of them. Load and measured memory of "
        "the node are not looked at.",
        (),
        recalls=True,
    ),
    Case(
        "SluiceCardsUnseen",
        {'DCGM_FI_DEV_FB_USED{Hostname="n1",UUID="GPU-a"}': "1000x400", **_OFFER_2},
        45,
        {},
        "1 GPUs have no exporter that tells of them",
        "The cluster's nodes offer so many GPUs more than exporters tell of. Placement goes by "
        "the count of devices there.",
        (
            {**_BOTH_NODES, **_OFFER_2},
            # There are no exporters: nobody wants telemetry.
            _OFFER_2,
        ),
    ),
    Case(
        "SluiceTelemetryStale",
        {'sluice_telemetry_nodes{instance="s1",state="Stale"}': "3x400"},
        20,
        {"instance": "s1"},
        "Sluice's telemetry of 3 nodes is old",
        "s1 knew what the cards of 3 nodes do, and does not now. Their load is taken for unknown.",
        (
            {'sluice_telemetry_nodes{instance="s1",state="Fresh"}': "3x400"},
            {'sluice_telemetry_nodes{instance="s1",state="Stale"}': "3x5 0x400"},
        ),
    ),
    Case(
        "SluiceTelemetryFailing",
        {_LOOKS.format("Failure"): "0+2x400", _LOOKS.format("Success"): "5x400"},
        30,
        {"instance": "s1", "source": "Prometheus"},
        "Sluice cannot read its telemetry from Prometheus",
        "s1 asked 20 times in 10 minutes and got nothing: no node's load is known.",
        (
            {_LOOKS.format("Failure"): "0+1x400", _LOOKS.format("Success"): "0+1x400"},
            {_LOOKS.format("Failure"): "0+1x400", _LOOKS.format("Partial"): "0+1x400"},
            {_LOOKS.format("Failure"): "7x400", _LOOKS.format("Success"): "5x400"},
        ),
        recalls=True,
    ),
)
