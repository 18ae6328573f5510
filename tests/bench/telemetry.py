# SPDX-License-Identifier: Apache-2.0
"""What telemetry of 6,212 GPUs costs: pages of exporters, answers of Prometheus, views of nodes.

`python -m tests.bench.telemetry` prints a line for each step and ends with one of JSON. What is
measured is the processor's time of this process; pages and answers are made beforehand.
"""

import asyncio
import gc
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click
import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client.parser import text_string_to_metric_families

from policies.telemetry.classes import TRAINING
from policies.telemetry.freshness import Freshness
from policies.telemetry.names import exporters
from policies.telemetry.samples import Sample
from reconciler.telemetry.access import HttpAccess
from reconciler.telemetry.exposition import Memory, PageReader
from reconciler.telemetry.http import Http, HttpLimits
from reconciler.telemetry.nodes import TelemetryNode
from reconciler.telemetry.prometheus import Prometheus, PrometheusSettings
from reconciler.telemetry.sampler import Sampler
from reconciler.telemetry.store import TelemetryStore
from tests.controlplane.dcgm import METRICS, Card, page
from tests.controlplane.dcgm_replay import STEP_SECONDS, apply, load

_NODES: Final = 1213
_GPUS: Final = 6212
_EVERY_SECONDS: Final = 30.0
_ROUNDS: Final = 3
_SHARE_ALLOWED: Final = 0.5


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes with their cards, and what the cards do."""

    cards: dict[str, list[Card]]

    def samples(self) -> int:
        """Return how many lines with a value the pages have together."""
        return sum(len(cards) for cards in self.cards.values()) * len(METRICS)


def fleet(nodes: int, gpus: int) -> Fleet:
    """Return a fleet with its cards spread evenly, each with a pod."""
    cards: dict[str, list[Card]] = {f"node-{number}": [] for number in range(nodes)}
    names = list(cards)
    for number in range(gpus):
        uuid = f"GPU-{number:08x}-0000-4000-8000-{number:012x}"
        pod = ("team-a", f"inference-{number}-7c9d8b6f5-x2x4z", "server")
        cards[names[number % nodes]].append(Card(uuid, pods=(pod,)))
    return Fleet(cards)


class Scraped:
    """Pages of every node, read into a store again and again."""

    def __init__(self, fleet: Fleet, rounds: int) -> None:
        self._fleet = fleet
        every = [card for cards in fleet.cards.values() for card in cards]
        series = load({}, cards=len(every), steps=rounds)
        self.pages: list[dict[str, bytes]] = []
        for step in range(rounds):
            for card, moments in zip(every, series, strict=True):
                apply(card, moments[step], STEP_SECONDS)
            self.pages.append({node: page(node, cards) for node, cards in fleet.cards.items()})
        self.reader = PageReader(exporters())
        self.memories = {node: Memory() for node in fleet.cards}

    def round(self, step: int, now: float) -> Iterator[tuple[Sample, ...]]:
        """Yield the samples of each page."""
        for node, text in self.pages[step].items():
            yield self.reader.read(text, now, node, self.memories[node]).samples


def measure_scrape(scraped: Scraped, store: TelemetryStore, clock: list[float]) -> dict[str, float]:
    """Return the seconds of each round: the first learns the labels, the others know them."""
    found: dict[str, float] = {}
    slowest = 0.0
    for step in range(len(scraped.pages)):
        clock[0] += _EVERY_SECONDS
        began = time.process_time()
        for samples in scraped.round(step, clock[0]):
            lap = time.process_time()
            store.put(samples)
            slowest = max(slowest, time.process_time() - lap)
        found["first_round_seconds" if step == 0 else "round_seconds"] = time.process_time() - began
    return found


def measure_plain(scraped: Scraped, nodes: int) -> float:
    """Return what prometheus-client's parser alone would need for all pages, in seconds."""
    texts = [text.decode() for text in list(scraped.pages[0].values())[:nodes]]
    began = time.process_time()
    for text in texts:
        for _ in text_string_to_metric_families(text):
            pass
    return (time.process_time() - began) * len(scraped.pages[0]) / nodes


def measure_views(store: TelemetryStore, names: list[str]) -> dict[str, float]:
    """Return what it takes to view every node anew, and again from memory, in milliseconds."""
    found = {}
    for name in ("views_ms", "views_again_ms"):
        began = time.process_time()
        loads = [store.node(node).load() for node in names]
        found[name] = (time.process_time() - began) * 1000
        if None in loads:
            raise click.ClickException("a node's load is unknown, so nothing was measured")
    return found


async def measure_prometheus(fleet: Fleet, now: float) -> dict[str, float]:
    """Return the cost of a later look at a server that answers with all series.

    Also the longest turn that it took of the loop.

    The server runs in the same loop, so that its work is counted too.
    """
    answers = {metric: _answer(fleet, metric, now) for metric, _, _, _ in METRICS}
    empty = orjson.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}})

    async def query(request: web.Request) -> web.Response:
        form = await request.post()
        name = str(form["query"]).partition("[")[0]
        return web.Response(body=answers.get(name, empty), content_type="application/json")

    app = web.Application()
    app.router.add_post("/api/v1/query", query)
    store = TelemetryStore(lambda _: Freshness(90.0), clock=lambda: now)
    nodes = [TelemetryNode(name, "", TRAINING) for name in fleet.cards]
    async with TestServer(app) as server, Http(HttpAccess(), HttpLimits()) as http:
        source = Prometheus(PrometheusSettings(str(server.make_url("/"))), http)
        sampler = Sampler(source, store, lambda: nodes, (TRAINING,))
        await sampler.look(frozenset(fleet.cards))
        _settle()
        turns = asyncio.create_task(_longest_turn())
        began = time.process_time()
        failed = await sampler.look(frozenset(fleet.cards))
        spent = time.process_time() - began
        turns.cancel()
        longest = (await asyncio.gather(turns, return_exceptions=True))[0]
    if failed is not None or any(store.node(name).load() is None for name in fleet.cards):
        raise click.ClickException("the answers were not taken up, so nothing was measured")
    return {"prometheus_seconds": spent, "prometheus_longest_turn_ms": float(str(longest))}


def _settle() -> None:
    """Do as a server does once it has started; what is made from now on is the collector's."""
    gc.collect()
    gc.freeze()


class _Longest(Exception):  # noqa: N818 - carries a number out of a cancelled task
    pass


async def _longest_turn() -> float:
    longest, last = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, last = max(longest, now - last), now
    except asyncio.CancelledError:
        raise _Longest(longest * 1000) from None


def _answer(fleet: Fleet, metric: str, now: float) -> bytes:
    value = next(each[3] for each in METRICS if each[0] == metric)
    series = [
        {
            "metric": {
                "__name__": metric,
                "gpu": str(index),
                "UUID": card.uuid,
                "pci_bus_id": "00000000:01:00.0",
                "device": f"nvidia{index}",
                "modelName": card.model,
                "Hostname": node,
                "DCGM_FI_DRIVER_VERSION": "580.95.05",
                "exported_namespace": card.pods[0][0],
                "exported_pod": card.pods[0][1],
                "exported_container": card.pods[0][2],
                "instance": "10.0.0.1:9400",
                "job": "dcgm-exporter",
            },
            "values": [[now - 30, str(value(card))], [now - 1, str(value(card))]],
        }
        for node, cards in fleet.cards.items()
        for index, card in enumerate(cards)
    ]
    data = {"resultType": "matrix", "result": series}
    return orjson.dumps({"status": "success", "data": data})


@click.command()
@click.option("--nodes", default=_NODES, show_default=True)
@click.option("--gpus", default=_GPUS, show_default=True)
def main(nodes: int, gpus: int) -> None:
    """Measure, and fail above half a core."""
    made = fleet(nodes, gpus)
    scraped = Scraped(made, _ROUNDS)
    click.echo(
        f"{made.samples()} samples of {gpus} GPUs on {nodes} nodes, each {_EVERY_SECONDS:g} s"
    )
    _settle()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock = [1_800_000_000.0]
    store = TelemetryStore(lambda _: Freshness(90.0), clock=lambda: clock[0])
    found: dict[str, float] = {"samples": made.samples()}
    found |= measure_scrape(scraped, store, clock)
    found |= measure_views(store, list(made.cards))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["memory_mib"] = (after - before) / 1024
    found["plain_parser_seconds"] = measure_plain(scraped, min(nodes, 20))
    found |= asyncio.run(measure_prometheus(made, clock[0]))
    worst = max(found["first_round_seconds"], found["round_seconds"], found["prometheus_seconds"])
    found["share_of_a_core"] = worst / _EVERY_SECONDS
    for name, value in found.items():
        click.echo(f"{name:28} {value:10.3f}")
    click.echo(json.dumps({name: round(value, 4) for name, value in found.items()}))
    if found["share_of_a_core"] > _SHARE_ALLOWED:
        raise click.ClickException("telemetry takes more than half a core")


if __name__ == "__main__":
    main()
