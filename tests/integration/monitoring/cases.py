# SPDX-License-Identifier: Apache-2.0
"""What makes each alert fire, what it then says, and what does not make it fire.

Values are in promtool's notation, one a minute: `0.9x60` is 0.9 and then 60 times more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

Series = Mapping[str, str]
"""Values by series."""


@dataclass(frozen=True, slots=True)
class Case:
    """An alert that fires of `series` at minute `at` with these labels, and of none of `quiet`.

    `recalls` are those that look back, so that they fire for a while of what was so before; they
    are not held against a series that has just ended.
    """

    alert: str
    series: Series
    at: int
    labels: Mapping[str, str]
    summary: str
    description: str
    quiet: tuple[Series, ...]
    recalls: bool = False


def card(
    busy: str,
    used: str = "72000x400",
    pods: tuple[str, ...] = ("p1", "p2"),
    mig: str = "",
    uuid: str = "GPU-a",
    *,
    exporter_pod: bool = False,
) -> Series:
    """Return the series of a card of 80 GiB as dcgm-exporter tells them, for each of its pods."""
    found: dict[str, str] = {}
    for pod in pods or ("",):
        labels = f'Hostname="n1",UUID="{uuid}",gpu="0"'
        if mig:
            labels += f',GPU_I_ID="{mig}",GPU_I_PROFILE="1g.10gb"'
        if pod:
            container = "nvidia-dcgm-exporter" if exporter_pod else "main"
            labels += f',container="{container}",namespace="a",pod="{pod}"'
        found[f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}}"] = busy
        found[f"DCGM_FI_DEV_FB_USED{{{labels}}}"] = used
        found[f"DCGM_FI_DEV_FB_FREE{{{labels}}}"] = "8000x400"
        found[f"DCGM_FI_DEV_FB_RESERVED{{{labels}}}"] = "0x400"
    return found


def _plain(percent: str, used: str = "72000x400") -> Series:
    """Return a card without profiling metrics, of a Prometheus that does not honour labels.

    It is scraped twice, by two jobs.
    """
    found: dict[str, str] = {}
    own = 'container="nvidia-dcgm-exporter",namespace="gpu-operator",pod="dcgm-x"'
    for job in ("one", "two"):
        for pod in ("p1", "p2"):
            whose = f'exported_container="main",exported_namespace="a",exported_pod="{pod}"'
            labels = f'hostname="n1",UUID="GPU-a",gpu="0",job="{job}",{own},{whose}'
            found[f"DCGM_FI_DEV_GPU_UTIL{{{labels}}}"] = percent
            found[f"DCGM_FI_DEV_FB_USED{{{labels}}}"] = used
            found[f"DCGM_FI_DEV_FB_TOTAL{{{labels}}}"] = "80000x400"
    return found


def _amd(busy: str) -> Series:
    labels = 'hostname="n1",gpu_uuid="u1",gpu_id="0"'
    return {
        f'gpu_gfx_activity{{{labels},pod="{pod}",namespace="a",container="main"}}': busy
        for pod in ("p1", "p2")
    } | {f"gpu_used_vram{{{labels}}}": "72000x400", f"gpu_total_vram{{{labels}}}": "80000x400"}


_ROWS: Final = 'DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{Hostname="n1",UUID="GPU-a"}'
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
_TENANT_A: Final = 'tenant="a",pool=""'
_PLAN: Final = "sluice_plan_duration_seconds"
_REVIEW: Final = "sluice_review_duration_seconds"
_EXTENDER: Final = "sluice_extender_duration_seconds"
_EXPIRY: Final = 'sluice_certificate_expiry_timestamp_seconds{instance="s1"}'


def _histogram(name: str, labels: str, fast: str, slow: str) -> Series:
    """Return buckets of which calls end within 1 ms (fast) or, all of them, within 5 s (slow)."""
    return {
        f'{name}_bucket{{{labels},le="0.001"}}': fast,
        f'{name}_bucket{{{labels},le="5.0"}}': slow,
        f'{name}_bucket{{{labels},le="+Inf"}}': slow,
        f"{name}_count{{{labels}}}": slow,
    }


_CARDS: Final = (
    Case(
        "SluiceCardHot",
        card("0.9x400"),
        30,
        {"node": "n1", "card": "GPU-a"},
        "Card GPU-a of node n1 is hot, and pods share it",
        "Its load is 90%; from 80% on the extender gives the node no more pods, but those that "
        "are there slow each other down.",
        (
            card("0.7x400"),
            card("0.9x400", pods=("p1",)),
            card("0.9x400", pods=()),
            card("0.9x400", mig="3"),
            card("0.9x400", exporter_pod=True),
            card("9223372036854775794x400"),
            card("0.9x400", used="9223372036854775794x400"),
            {k: v for k, v in card("0.9x400").items() if "FB_FREE" not in k},
            {k: v for k, v in card("0.9x400").items() if "GR_ENGINE" not in k},
            # Hot for a moment again and again.
            card("0.9 0.9 0.9 0.1 0.9 0.9 0.9 0.1 0.9 0.9 0.9 0.1 0.9 0.9 0.9 0.1 0.9x10 0.1 0.9"),
            _amd("65535x400"),
        ),
    ),
    Case(
        "SluiceCardHot",
        _amd("90x400"),
        30,
        {"node": "n1", "card": "u1"},
        "Card u1 of node n1 is hot, and pods share it",
        "Its load is 90%; from 80% on the extender gives the node no more pods, but those that "
        "are there slow each other down.",
        (_amd("50x400"),),
    ),
    Case(
        "SluiceCardHot",
        _plain("90x400"),
        30,
        {"node": "n1", "card": "GPU-a"},
        "Card GPU-a of node n1 is hot, and pods share it",
        "Its load is 90%; from 80% on the extender gives the node no more pods, but those that "
        "are there slow each other down.",
        (_plain("50x400"), _plain("2147483632x400"), _plain("90x400", "2147483632x400")),
    ),
    Case(
        "SluiceNodeHot",
        card("0.95x400"),
        45,
        {"node": "n1"},
        "All in all the shared cards of node n1 are hot",
        "The mean load of its cards is 93.5% (80% is the most that the extender fills a node to).",
        (
            card("0.5x400"),
            card("0.95x400", pods=("p1",)),
            # A hot card of two that are known is no hot node.
            {**card("0.95x400"), **card("0.1x400", used="0x400", uuid="GPU-b")},
        ),
    ),
    Case(
        "SluiceCardMemoryFull",
        card("0.1x400", used="155000x400"),
        30,
        {"node": "n1", "card": "GPU-a"},
        "The memory of card GPU-a of node n1 is nearly full, and pods share it",
        "95.09% of it is used. The next allocation of any of its pods may fail.",
        (
            card("0.1x400", used="100000x400"),
            card("0.1x400", used="155000x400", pods=("p1",)),
            card("0.1x400", used="155000x400", mig="3"),
        ),
    ),
    Case(
        "SluiceCardTemperatureHigh",
        {'DCGM_FI_DEV_GPU_TEMP{Hostname="n1",UUID="GPU-a"}': "88x400"},
        20,
        {"node": "n1", "card": "GPU-a"},
        "Card GPU-a of node n1 has 88 degrees Celsius",
        "At some degrees more it slows itself down, and all work on it with it.",
        (
            {'DCGM_FI_DEV_GPU_TEMP{Hostname="n1",UUID="GPU-a"}': "80x400"},
            {'DCGM_FI_DEV_GPU_TEMP{Hostname="n1",UUID="GPU-a"}': "2147483632x400"},
        ),
    ),
    Case(
        "SluiceCardMemoryFailing",
        {_ROWS: "1x19 3x400"},
        30,
        {"node": "n1", "card": "GPU-a"},
        "The memory of card GPU-a of node n1 is failing",
        "It had 2.033 errors within an hour that could not be corrected. What ran on it then has "
        "failed or is wrong.",
        (
            {_ROWS: "3x400"},
            # The card was reset.
            {_ROWS: "3x19 0x400"},
            {_ROWS: "0x19 9223372036854775794x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceWorkloadIdle",
        card("0x400", pods=("p1",)),
        150,
        {"namespace": "a", "pod": "p1"},
        "Pod a/p1 holds GPUs and does not use them",
        "Their utilisation is 0%, and has been below 1% for 2 hours, while its tenant is charged "
        "for them.",
        (
            card("0.2x400", pods=("p1",)),
            card("0x100 0.5 0x300", pods=("p1",)),
            card("0x400", pods=()),
            card("0x400", exporter_pod=True),
        ),
    ),
)

_TELEMETRY: Final = (
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

_MODELS: Final = (
    Case(
        "SluiceFragmentationRising",
        {
            'sluice_gpu_fragmentation_milli{model="H100"}': "1000x300 4000x400",
            'sluice_gpus_capacity_milli{model="H100"}': "20000x800",
        },
        450,
        {"model": "H100"},
        "Fragmentation of H100 has risen by 15% of its GPUs in 6 hours",
        "What is free lies in pieces that a typical pod of this cluster cannot use.",
        (
            {
                'sluice_gpu_fragmentation_milli{model="H100"}': "4000x800",
                'sluice_gpus_capacity_milli{model="H100"}': "20000x800",
            },
            {
                'sluice_gpu_fragmentation_milli{model="H100"}': "4000x300 1000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "20000x800",
            },
            {
                'sluice_gpu_fragmentation_milli{model="H100"}': "0x300 1000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "0x800",
            },
            # Nobody knew 6 hours ago.
            {
                'sluice_gpu_fragmentation_milli{model="H100"}': "_x300 4000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "20000x800",
            },
        ),
    ),
    Case(
        "SluiceMemoryStranded",
        {
            'sluice_gpu_memory_stranded_mib{model="H100"}': "80000x400",
            'sluice_gpus_capacity_milli{model="H100"}': "4000x400",
        },
        90,
        {"model": "H100"},
        "20k MiB of each H100 are stranded",
        "Devices are given out wholly to pods that state to need far less memory: on average so "
        "much of each GPU of this model can be given to nobody else.",
        (
            {
                'sluice_gpu_memory_stranded_mib{model="H100"}': "80000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "40000x400",
            },
            {
                'sluice_gpu_memory_stranded_mib{model="H100"}': "80000x400",
                'sluice_gpus_capacity_milli{model="H100"}': "0x400",
            },
        ),
    ),
)

_TENANTS: Final = (
    Case(
        "SluiceQuotaWaitLong",
        {
            'sluice_tenant_oldest_wait_seconds{tenant="a"}': "0+60x400",
            'sluice_tenant_pending_pods{tenant="a"}': "7x400",
        },
        300,
        {"tenant": "a"},
        "A pod of tenant a has waited for 5h 0m 0s",
        "It waits for quota or for room. 7 pods of the tenant wait in all.",
        (
            {'sluice_tenant_oldest_wait_seconds{tenant="a"}': "0+30x400"},
            {'sluice_tenant_oldest_wait_seconds{tenant="a"}': "0+60x250 0x100"},
        ),
    ),
    Case(
        "SluiceGuaranteeOwed",
        {f"sluice_tenant_owed_gpus{{{_TENANT_A}}}": "2x400"},
        60,
        {"tenant": "a"},
        "Tenant a lacks 2 GPUs of its guarantee",
        "Its pods have waited for 30 minutes for what is theirs: nodes are missing, or what was "
        "lent does not come back.",
        (
            {f"sluice_tenant_owed_gpus{{{_TENANT_A}}}": "0x400"},
            {f"sluice_tenant_owed_gpus{{{_TENANT_A}}}": "2x20 0 2x20 0 2x20"},
        ),
    ),
    Case(
        "SluiceGuaranteeOwed",
        {'sluice_tenant_owed_gpus{tenant="a",pool="h100"}': "2x400"},
        60,
        {"tenant": "a", "pool": "h100"},
        "Tenant a lacks 2 GPUs of its guarantee",
        "Its pods have waited for 30 minutes for what is theirs in pool h100: nodes are missing, "
        "or what was lent does not come back.",
        (),
    ),
    Case(
        "SluiceGuaranteesOvercommitted",
        {'sluice_overcommitted_gpus{pool="h100"}': "8x400"},
        90,
        {"pool": "h100"},
        "Guarantees exceed what there is by 8 GPUs",
        "Nodes of pool h100 are fewer than what tenants are promised: not all of them can have it "
        "at once.",
        ({'sluice_overcommitted_gpus{pool="h100"}': "0x400"},),
    ),
    Case(
        "SluiceTenantOverCeiling",
        {
            f"sluice_tenant_used_gpus{{{_TENANT_A}}}": "6x400",
            f"sluice_tenant_ceiling_gpus{{{_TENANT_A}}}": "4x400",
        },
        90,
        {"tenant": "a"},
        "Tenant a uses 2 GPUs more than its ceiling",
        "A ceiling was lowered, or a namespace was moved. Nobody is evicted for it, and nothing "
        "is added until it fits.",
        (
            {
                f"sluice_tenant_used_gpus{{{_TENANT_A}}}": "4x400",
                f"sluice_tenant_ceiling_gpus{{{_TENANT_A}}}": "4x400",
            },
            # It has no ceiling.
            {f"sluice_tenant_used_gpus{{{_TENANT_A}}}": "6x400"},
        ),
    ),
    Case(
        "SluiceOddPods",
        {'sluice_odd_pods{kind="SkippedGate"}': "2x400"},
        30,
        {"kind": "SkippedGate"},
        "2 pods are not charged as they should be: SkippedGate",
        "They are counted all the same, so that no ceiling is passed for them. SkippedGate are "
        "pods that got GPUs without Sluice.",
        ({'sluice_odd_pods{kind="SkippedGate"}': "0x400"},),
    ),
)

_REVIEWS: Final = (
    Case(
        "SluiceReviewErrors",
        {
            'sluice_internal_errors_total{phase="Mutate",cause="Exception"}': "0+6x400",
            'sluice_reviews_total{phase="Mutate",verdict="Denied"}': "0+60x400",
        },
        20,
        {"phase": "Mutate"},
        "Sluice could not decide 10% of the Mutate reviews",
        "They got the configured failure mode, by default a refusal of GPU pods.",
        (
            {
                'sluice_internal_errors_total{phase="Mutate",cause="Exception"}': "0x400",
                'sluice_reviews_total{phase="Mutate",verdict="Denied"}': "0+60x400",
            },
            # Long ago, and nobody asks.
            {
                'sluice_internal_errors_total{phase="Mutate",cause="Exception"}': "9x400",
                'sluice_reviews_total{phase="Mutate",verdict="Denied"}': "60x400",
            },
        ),
        recalls=True,
    ),
    Case(
        "SluiceReviewLatencyHigh",
        _histogram(_REVIEW, 'phase="Mutate"', "0+50x400", "0+100x400"),
        30,
        {"phase": "Mutate"},
        "One in 100 Mutate reviews takes 4.9s or more",
        "Every GPU pod is created so much later; the API server gives up after 5 s.",
        (
            _histogram(_REVIEW, 'phase="Mutate"', "0+100x400", "0+100x400"),
            _histogram(_REVIEW, 'phase="Mutate"', "50x400", "100x400"),
        ),
        recalls=True,
    ),
    Case(
        "SluiceExtenderFailing",
        {'sluice_extender_failures_total{verb="filter"}': "0x19 3x400"},
        25,
        {"verb": "filter"},
        "The extender failed to answer 3 times on filter",
        "In these cases of the last 15 minutes every node passed, and memory and load were not "
        "looked at.",
        (
            {'sluice_extender_failures_total{verb="filter"}': "0x400"},
            {'sluice_extender_failures_total{verb="filter"}': "0 3x400"},
            {'sluice_extender_failures_total{verb="filter"}': "5x19 0x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceExtenderSlow",
        _histogram(_EXTENDER, 'verb="filter"', "0+50x400", "0+100x400"),
        30,
        {"verb": "filter"},
        "One in 100 answers of the extender takes 4.9s or more",
        "kube-scheduler goes on without an answer after 200 ms (filter).",
        (_histogram(_EXTENDER, 'verb="filter"', "0+100x400", "0+100x400"),),
        recalls=True,
    ),
    Case(
        "SluiceExtenderGone",
        {
            'sluice_extender_active{instance="e1"}': "1x10 stale",
            'sluice_extender_active{instance="e2"}': "0x400",
        },
        30,
        {},
        "No extender is active, and there was one within a day",
        "kube-scheduler goes on without: devices are counted, memory and load are not looked at.",
        (
            {'sluice_extender_active{instance="e1"}': "0x400"},
            {
                'sluice_extender_active{instance="e1"}': "1x10 0x400",
                'sluice_extender_active{instance="e2"}': "0x11 1x400",
            },
        ),
        recalls=True,
    ),
)

_HEALTH: Final = (
    Case(
        "SluiceGone",
        {'sluice_policy_set_info{generation="7c1f"}': "1x5 stale"},
        20,
        {},
        "No process of Sluice is seen",
        "None runs, or Prometheus does not reach them. While none runs, GPU pods are refused and "
        "nothing that waits for quota is released.",
        ({'sluice_policy_set_info{generation="7c1f"}': "1x400"},),
        recalls=True,
    ),
    Case(
        "SluiceNoLeader",
        {'sluice_leader{instance="s1"}': "0x400", 'sluice_leader{instance="s2"}': "1x10 0x400"},
        30,
        {},
        "Nobody leads",
        "Pods go on being decided on, and nothing that waits for quota is released, nothing is "
        "taken back, nothing is metered.",
        (
            {'sluice_leader{instance="s1"}': "0x400", 'sluice_leader{instance="s2"}': "1x400"},
            # It goes from one to the other.
            {
                'sluice_leader{instance="s1"}': "1x20 0x400",
                'sluice_leader{instance="s2"}': "0x22 1x400",
            },
        ),
    ),
    Case(
        "SluiceSeveralLeaders",
        {'sluice_leader{instance="s1"}': "1x400", 'sluice_leader{instance="s2"}': "1x400"},
        10,
        {},
        "2 processes say that they lead",
        "Ceilings hold all the same, since what is under way stands on the Lease; but this is a "
        "fault, or there are two installations.",
        ({'sluice_leader{instance="s1"}': "1x400", 'sluice_leader{instance="s2"}': "0x400"},),
    ),
    Case(
        "SluiceControllersFailing",
        {"sluice_controllers_failures_total": "0x19 2x400"},
        30,
        {},
        "Controllers of Sluice died 2 times in 30 minutes",
        "Another process leads after each. It is a fault of Sluice, with a traceback in the log.",
        (
            {"sluice_controllers_failures_total": "0x400"},
            # The process has started anew.
            {"sluice_controllers_failures_total": "2x19 0x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceDocumentsBroken",
        {'sluice_policy_set_broken{instance="s1"}': "1x400"},
        20,
        {"instance": "s1"},
        "The policy documents of s1 are broken",
        "It goes on with the last good set, and takes up no change until they are mended.",
        (
            {'sluice_policy_set_broken{instance="s1"}': "0x400"},
            # Somebody has mended them within minutes.
            {'sluice_policy_set_broken{instance="s1"}': "1x3 0x400"},
        ),
    ),
    Case(
        "SluiceDocumentsDiffer",
        {
            'sluice_policy_set_info{instance="s1",generation="7c1f"}': "1x400",
            'sluice_policy_set_info{instance="s2",generation="90ab"}': "1x400",
        },
        30,
        {},
        "Processes of Sluice decide by 2 different sets of documents",
        "What a pod gets depends on which of them is asked.",
        (
            {
                'sluice_policy_set_info{instance="s1",generation="7c1f"}': "1x400",
                'sluice_policy_set_info{instance="s2",generation="7c1f"}': "1x400",
            },
        ),
    ),
    Case(
        "SluiceFactsStale",
        {'sluice_facts_age_seconds{instance="s1"}': "0+60x400"},
        20,
        {"instance": "s1"},
        "s1 has not heard of nodes and namespaces for 20m 0s",
        "It decides on what it last knew, and says so in its answers.",
        ({'sluice_facts_age_seconds{instance="s1"}': "0x400"},),
    ),
    Case(
        "SluicePlansSlow",
        _histogram(_PLAN, 'controller="quota"', "0+50x400", "0+100x400"),
        40,
        {"controller": "quota"},
        "Controller quota takes 4.9s for a plan",
        "Pods are released so much later.",
        (_histogram(_PLAN, 'controller="quota"', "0+100x400", "0+100x400"),),
        recalls=True,
    ),
    Case(
        "SluiceReleasesFailing",
        {'sluice_release_failures_total{error="ForbiddenError"}': "0+2x400"},
        30,
        {"error": "ForbiddenError"},
        "The API server refused 30 releases: ForbiddenError",
        "They are tried again. Until then the pods wait, and are counted as charged.",
        (
            {'sluice_release_failures_total{error="ConflictError"}': "0+2x400"},
            {'sluice_release_failures_total{error="ForbiddenError"}': "5x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceMirrorFailing",
        {'sluice_mirror_failures_total{error="ForbiddenError"}': "0+2x400"},
        30,
        {"error": "ForbiddenError"},
        "Documents could not be mirrored 30 times: ForbiddenError",
        "What `kubectl get` shows of documents is not what is served.",
        ({'sluice_mirror_failures_total{error="ForbiddenError"}': "5x400"},),
        recalls=True,
    ),
    Case(
        "SluiceStatusesFailing",
        {'sluice_status_failures_total{error="ForbiddenError"}': "0+2x400"},
        30,
        {"error": "ForbiddenError"},
        "Statuses of tenants were not written 30 times: ForbiddenError",
        "What `kubectl get tenants` shows is old, and `whenOverQuota: Deny` refuses by it.",
        ({'sluice_status_failures_total{error="ForbiddenError"}': "5x400"},),
        recalls=True,
    ),
    Case(
        "SluiceAuditLinesLost",
        {'sluice_audit_lines_dropped_total{instance="s1",cause="WriteFailed"}': "0x19 30x400"},
        25,
        {"instance": "s1", "cause": "WriteFailed"},
        "30 lines of the audit log are lost: WriteFailed",
        "s1 could not write them. The decisions stand; there is no record of them, and usage may "
        "be missing.",
        ({'sluice_audit_lines_dropped_total{instance="s1",cause="WriteFailed"}': "30x400"},),
        recalls=True,
    ),
    Case(
        "SluiceCertificateEndsSoon",
        {_EXPIRY: f"{10 * 86_400}x400"},
        120,
        {"instance": "s1"},
        "The certificate of s1 ends in 9d 22h 0m 0s",
        "It should have been renewed long before. When it has ended the API server takes no "
        "answer of the webhook: GPU pods are refused.",
        (
            {_EXPIRY: f"{100 * 86_400}x400"},
            # Nothing is served over TLS.
            {_EXPIRY: "0x400"},
        ),
    ),
    Case(
        "SluiceCertificateEnding",
        {_EXPIRY: f"{86_400}x400"},
        60,
        {"instance": "s1"},
        "The certificate of s1 ends in 23h 0m 0s",
        "When it has ended the API server takes no answer of the webhook: GPU pods are refused.",
        ({_EXPIRY: f"{10 * 86_400}x400"}, {_EXPIRY: "0x400"}),
    ),
    Case(
        "SluiceCertificateWritesFailing",
        {'sluice_certificate_failures_total{error="ForbiddenError"}': "0+2x400"},
        30,
        {"error": "ForbiddenError"},
        "The leader could not write certificates 30 times: ForbiddenError",
        "It cannot renew them, or not say whom the webhook's callers are to trust.",
        (
            {'sluice_certificate_failures_total{error="ConflictError"}': "0+2x400"},
            {'sluice_certificate_failures_total{error="ForbiddenError"}': "5x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceCertificateReloadsFailing",
        {'sluice_tls_reloads_total{instance="s1",result="Failure"}': "0x19 3x400"},
        30,
        {"instance": "s1"},
        "s1 could not take up its new certificate",
        "It tried 3 times in 30 minutes and goes on with the old one.",
        (
            {'sluice_tls_reloads_total{instance="s1",result="Failure"}': "0x400"},
            {'sluice_tls_reloads_total{instance="s1",result="Success"}': "0x19 3x400"},
        ),
        recalls=True,
    ),
)

CASES: Final = (*_CARDS, *_TELEMETRY, *_MODELS, *_TENANTS, *_REVIEWS, *_HEALTH)
