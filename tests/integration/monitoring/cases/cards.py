# SPDX-License-Identifier: Apache-2.0
"""Cards, nodes and the pods on them."""

from typing import Final

from tests.integration.monitoring.cases.case import Case, Series


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

CARDS: Final = (
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
