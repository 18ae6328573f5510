# SPDX-License-Identifier: Apache-2.0
"""The extender under measurement: a full cluster in memory, which goes on changing as it answers.

No API server: what watches would tell is told directly, each pod that is given a node is seen
bound, and an old one goes. Everything that follows from a question is the extender's own.
"""

import argparse
import asyncio
import random
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import uvloop

from policies.cluster.nodes import read_node
from policies.placement.asks import DeviceAsk
from policies.placement.model import Model
from policies.placement.occupancy import Gauge
from policies.placement.pods import PodReader
from policies.vendors import build_catalog
from reconciler.runtime.health import Readiness
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.signals import stop_on_signals
from tests.bench.extender_load import NODES, PODS, new_pod, raw_nodes
from webhook.extender.answers import Answers
from webhook.extender.handlers import Handlers
from webhook.extender.metrics import ExtenderCounts
from webhook.extender.wire import Question
from webhook.server import HttpServer, Listen, serve
from webhook.tls import ServerTls
from webhook.tls_sources import PemFiles

_CARDS: Final = 8


class Living(Answers):
    """Answers, and does after each what the cluster would do: bind the pod, and end an old one."""

    def __init__(self, model: Model, reader: PodReader) -> None:
        super().__init__(model, reader, lambda: True)
        self.event_ms: list[float] = []
        self._known: deque[str] = deque()

    def fill(self, random_: random.Random) -> None:
        """Bring the nodes, and pods until there are enough, each to the node that is best."""
        names = []
        for raw in raw_nodes(NODES):
            self._model.put_node(read_node(raw))
            names.append(raw["metadata"]["name"])
        for name in names:
            load = random_.randrange(950)
            free = (random_.randrange(10_000, 80_000),) * _CARDS
            self._model.put_gauge(name, Gauge(load, (load,) * _CARDS, free))
        for number in range(PODS):
            pod = new_pod(random_, f"old-{number}")
            asks = self._reader.read(pod).wish.ask.devices
            room = [n for n in random_.sample(names, 200) if self._has_room(n, asks)]
            self._bind(pod, room[0] if room else names[0])
        for _ in self._model.learn():
            pass
        self.event_ms.clear()

    def _has_room(self, name: str, asks: tuple[DeviceAsk, ...]) -> bool:
        here = self._model.occupancy(name)
        return here is not None and all(here.free.get(a.resource, 0) >= a.count for a in asks)

    def prioritize(self, question: Question) -> Mapping[str, int]:
        """Answer, and have the pod bound soon after."""
        scores = super().prioritize(question)
        best = next((name for name, score in scores.items() if score == 10), None)
        if best is not None:
            pod = {**question.pod, "spec": {**question.pod["spec"], "nodeName": best}}
            asyncio.get_running_loop().call_soon(self._bind, pod, best)
        return scores

    def _bind(self, pod: Mapping[str, Any], node: str) -> None:
        began = time.perf_counter()
        spec = {**pod["spec"], "nodeName": node}
        seen = self._reader.read({**pod, "spec": spec})
        self._model.put_pod(seen)
        self.event_ms.append(1000 * (time.perf_counter() - began))
        self._known.append(seen.uid)
        if len(self._known) > PODS:
            self._model.remove_pod(self._known.popleft())


def main() -> None:
    """Serve until SIGTERM; then write what events cost to the file that is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificates", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--report", type=Path, required=True)
    options = parser.parse_args()
    catalog = build_catalog()
    reader = PodReader(catalog)
    living = Living(Model(catalog), reader)
    living.fill(random.Random(1))  # noqa: S311 - the same each time
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(living, options.certificates, options.port))
    options.report.write_bytes(orjson.dumps(sorted(living.event_ms)))


async def _serve(living: Living, certificates: Path, port: int) -> None:
    metrics = Metrics()
    files = PemFiles(certificates / "tls.crt", certificates / "tls.key")
    counts = ExtenderCounts(metrics, living._model.assumed)
    handlers = Handlers(living, lambda: Readiness(()), counts)
    tls = ServerTls(files, metrics)
    listen = Listen(host="127.0.0.1", port=port, grace=0.0)
    with stop_on_signals() as events:
        await serve(HttpServer(handlers, tls, listen, "extender"), events)


if __name__ == "__main__":
    main()
