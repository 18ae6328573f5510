# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes exporters' stand-ins; it is killed, they vanish or write nonsense.

Nothing that was not measured, or not lately, may come out as a number.
"""

import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import aiohttp
import pytest

from policies.telemetry.samples import PodName
from tests.controlplane.dcgm import Card, DcgmExporter, Instance
from tests.controlplane.dcgm_replay import STEP_SECONDS, apply, load
from tests.controlplane.monitoring import PrometheusServer, Scraping
from tests.integration.telemetry.watching import LIMITS, Watched, watching
from tests.support.waiting import until

_SECONDS = 20.0
_POD = ("team-a", "serve-0", "main")


@pytest.fixture
def server(monitoring: Mapping[str, Path]) -> Iterator[PrometheusServer]:
    with PrometheusServer(monitoring["prometheus"]) as started:
        yield started


async def test_what_a_card_does_is_known_within_a_period_with_the_time_of_the_scrape(
    server: PrometheusServer,
) -> None:
    card = Card("GPU-0", busy=0.25, used_mib=20_000, xid=0, pods=(_POD,))
    with DcgmExporter("node-a", [card]) as exporter:
        server.set_targets([exporter.address])
        async with watching(server.url) as watched:
            await until(lambda: watched.is_complete() and watched.busy() == 0.25, _SECONDS)
            values = watched.values()
            assert values.memory_used_mib is not None
            assert values.memory_used_mib.value == 20_000
            assert values.memory_total_mib == 81_559
            assert values.memory_free_mib == 81_559 - 457 - 20_000
            assert values.sm_occupancy == 0.125
            assert values.power_watts == 225
            assert values.temperature_celsius == 45
            assert values.xid == 0
            assert [use.pod for use in values.pods] == [PodName(*_POD)]
            assert values.time is not None
            assert 0 <= time.time() - values.time < LIMITS.max_age_seconds
            card.busy, card.xid = 0.95, 79
            changed = time.time()
            await until(lambda: watched.busy() == 0.95 and watched.values().xid == 79, _SECONDS)
            # One scrape (1 s), one look (0.5 s), and room for a busy machine.
            assert time.time() - changed < 6
            load_now = watched.store.node("node-a").load(expected_cards=1)
            assert load_now == pytest.approx(0.7 * 0.95 + 0.3 * 20_000 / 81_559)


async def test_an_exporter_that_vanishes_is_unknown_within_the_limit_and_comes_back(
    server: PrometheusServer,
) -> None:
    with (
        DcgmExporter("node-a", [Card("GPU-0", busy=0.9)]) as exporter,
        DcgmExporter("node-b", [Card("GPU-1", busy=0.4)]) as other,
    ):
        server.set_targets([exporter.address, other.address])
        async with watching(server.url, "node-a", "node-b") as watched:
            await until(lambda: watched.busy() == 0.9 and watched.busy("node-b") == 0.4, _SECONDS)
            exporter.stop()
            gone = time.time()
            await until(lambda: watched.busy() in {None, 0.9} and watched.busy() is None, _SECONDS)
            assert time.time() - gone < LIMITS.max_age_seconds + LIMITS.skew_seconds + 2
            assert watched.store.node("node-a").load() is None
            assert watched.busy("node-b") == 0.4
            exporter.start()
            await until(lambda: watched.busy() == 0.9, _SECONDS)


async def test_a_prometheus_that_is_killed_and_started_brings_back_no_old_value(
    server: PrometheusServer,
) -> None:
    with DcgmExporter("node-a", [Card("GPU-0", busy=0.9)]) as exporter:
        server.set_targets([exporter.address])
        async with watching(server.url) as watched:
            await until(lambda: watched.busy() == 0.9, _SECONDS)
            server.kill()
            await until(lambda: watched.busy() is None, _SECONDS)
            assert watched.sampler.looks["Failure"] > 0
            exporter.stop()
            server.start()
            # A fresh instant answer would tell the old value for five minutes.
            await until_async(lambda: _instant(server.url), "0.9")
            assert await watched.look() is None
            assert watched.busy() is None
            exporter.cards[0].busy = 0.1
            exporter.start()
            await until(lambda: watched.busy() == 0.1, 2 * _SECONDS)


async def test_values_that_are_none_leave_what_is_known_to_grow_old(
    server: PrometheusServer,
) -> None:
    card = Card("GPU-0", busy=0.9)
    with DcgmExporter("node-a", [card]) as exporter:
        server.set_targets([exporter.address])
        async with watching(server.url) as watched:
            await until(lambda: watched.busy() == 0.9, _SECONDS)
            for name in ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"):
                card.replaced[name] = "NaN"
            card.replaced["DCGM_FI_DEV_FB_USED"] = "9223372036854775794"
            card.replaced["DCGM_FI_DEV_FB_FREE"] = "+Inf"
            await until(lambda: watched.busy() is None, _SECONDS)
            assert watched.values().memory_used_mib is None
            assert watched.values().memory_free_mib is None
            assert watched.values().temperature_celsius == 45
            assert watched.store.node("node-a").load() is None


async def test_one_card_that_two_exporters_show_is_one_card_with_the_newest_value(
    server: PrometheusServer,
) -> None:
    first = Card("GPU-0", busy=0.2, used_mib=10_000)
    second = Card("GPU-0", busy=0.2, used_mib=10_000)
    with (
        DcgmExporter("node-a", [first]) as one,
        DcgmExporter("node-a", [second], node_label="hostname") as two,
    ):
        server.set_targets([one.address, two.address])
        async with watching(server.url) as watched:
            await until(lambda: watched.busy() == 0.2, _SECONDS)
            assert len(watched.store.node("node-a").cards) == 1
            two.stop()
            first.busy = 0.7
            await until(lambda: watched.busy() == 0.7, _SECONDS)
            memory = watched.values().memory_used_mib
            assert memory is not None
            assert memory.value == 10_000


async def test_an_energy_counter_that_is_reset_makes_no_power(server: PrometheusServer) -> None:
    card = Card("GPU-0", energy_millijoules=10**12)
    card.replaced["DCGM_FI_DEV_POWER_USAGE"] = "NaN"
    seen: set[float] = set()
    with DcgmExporter("node-a", [card]) as exporter:
        server.set_targets([exporter.address])
        async with watching(server.url) as watched:

            def saw_none_again() -> bool:
                power = watched.values().power_watts
                seen.update(() if power is None else (power,))
                return power is None and watched.values().temperature_celsius is not None

            def grew() -> bool:
                card.energy_millijoules += 100
                saw_none_again()
                return len(seen) >= 2

            await until(grew, _SECONDS)
            card.energy_millijoules = 5
            await until(saw_none_again, _SECONDS)
    assert all(0 <= power < 10**6 for power in seen)


async def test_instances_are_told_apart_through_prometheus(server: PrometheusServer) -> None:
    instances = (
        Instance("1", "3g.40gb", 0.8, 30_000, 40_192, _POD),
        Instance("9", "1g.10gb", 0.1, 500, 9_856),
    )
    with DcgmExporter("node-a", [Card("GPU-0", instances=instances)]) as exporter:
        server.set_targets([exporter.address])
        async with watching(server.url) as watched:
            await until(lambda: _is_whole(watched), _SECONDS)
            (card,) = watched.store.node("node-a").cards
    assert [(each.id, each.profile) for each in card.instances] == [
        ("1", "3g.40gb"),
        ("9", "1g.10gb"),
    ]
    assert card.values.temperature_celsius == 45
    assert [each.values.memory_total_mib for each in card.instances] == [40_192, 9_856]
    assert [use.pod.name for use in card.instances[0].values.pods] == ["serve-0"]


async def test_a_prometheus_that_renames_labels_attributes_no_card_to_the_exporter(
    monitoring: Mapping[str, Path],
) -> None:
    cards = [Card("GPU-0", busy=0.5, pods=(_POD,)), Card("GPU-1", busy=0.5)]
    target = {"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-x8k2d"}
    target |= {"container": "nvidia-dcgm-exporter", "node": "node-a"}
    with (
        PrometheusServer(monitoring["prometheus"], Scraping(honor_labels=False)) as server,
        DcgmExporter("nvidia-dcgm-exporter-x8k2d", cards) as exporter,
    ):
        server.set_targets([exporter.address], target)
        async with watching(server.url) as watched:
            await until(lambda: watched.busy() == 0.5, _SECONDS)
            pods = {card.uuid: card.values.pods for card in watched.store.node("node-a").cards}
    assert [use.pod for use in pods["GPU-0"]] == [PodName(*_POD)]
    assert pods["GPU-1"] == ()


async def test_a_day_of_inference_is_followed_step_by_step(server: PrometheusServer) -> None:
    cards = [Card(f"GPU-{number}") for number in range(4)]
    series = [each[::60] for each in load(os.environ, cards=4, steps=300)]
    assert len(set(zip(*series, strict=True))) == 5, "nothing happens"
    with DcgmExporter("node-a", cards) as exporter:
        server.set_targets([exporter.address])
        async with watching(server.url) as watched:
            for step in range(5):
                for card, moments in zip(cards, series, strict=True):
                    apply(card, moments[step], 60 * STEP_SECONDS)
                # The exporter writes six decimals.
                busy = {card.uuid: pytest.approx(card.busy, abs=1e-6) for card in cards}
                used = {card.uuid: pytest.approx(card.used_mib, abs=1) for card in cards}
                await until(lambda: busy == _busy(watched), _SECONDS)  # noqa: B023 - awaited
                await until(lambda: used == _used(watched), _SECONDS)  # noqa: B023 - awaited


def _is_whole(watched: Watched) -> bool:
    values = watched.values()
    told = (values.utilisation, values.memory_total_mib, values.temperature_celsius)
    return all(value is not None for value in told)


def _busy(watched: Watched) -> dict[str, float | None]:
    return {
        card.uuid: None if (busy := card.values.utilisation) is None else busy.value
        for card in watched.store.node("node-a").cards
    }


def _used(watched: Watched) -> dict[str, float | None]:
    return {
        card.uuid: None if (used := card.values.memory_used_mib) is None else used.value
        for card in watched.store.node("node-a").cards
    }


async def _instant(url: str) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"{url}/api/v1/query", params={"query": "DCGM_FI_PROF_GR_ENGINE_ACTIVE"}
        ) as answer,
    ):
        result = (await answer.json())["data"]["result"]
    return str(result[0]["value"][1]) if result else ""


async def until_async(ask: Callable[[], Awaitable[str]], wanted: str) -> None:
    """Ask until the answer is the wanted one, for as long as anything may take."""
    deadline = time.monotonic() + _SECONDS
    while (seen := await ask()) != wanted:
        assert time.monotonic() < deadline, seen
