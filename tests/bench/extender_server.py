# SPDX-License-Identifier: Apache-2.0
"""The extender under measurement, or a bare server that answers as many bytes without a thought."""

import argparse
import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import orjson
import uvloop

from policies.placement.model import Model
from policies.placement.pods import PodReader
from policies.vendors import build_catalog
from reconciler.runtime.health import Readiness
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.signals import stop_on_signals
from tests.bench.extender_load import NODES, raw_nodes
from tests.bench.extender_world import Living
from webhook.extender.handlers import Handlers
from webhook.extender.metrics import ExtenderCounts
from webhook.server import HttpServer, Listen, serve
from webhook.tls import ServerTls
from webhook.tls_sources import PemFiles

_PASSING: Final = 250
"""Of all nodes; about as many as pass for the pods of the load, on average."""
_REASON: Final = "nvidia.com/gpu.shared: 0 of 32 free, needs 1"


class Timed(Handlers):
    """Handlers that note the processor's time of each answer, from bytes to bytes."""

    def __init__(self, living: Living, metrics: Metrics) -> None:
        self.spent_ms: dict[str, list[float]] = {"filter": [], "prioritize": []}
        counts = ExtenderCounts(metrics, living._model.assumed)
        super().__init__(living, lambda: Readiness(()), counts)

    def _filter(self, body: bytes) -> bytes:
        return self._timed("filter", super()._filter, body)

    def _prioritize(self, body: bytes) -> bytes:
        return self._timed("prioritize", super()._prioritize, body)

    def _timed(self, verb: str, answer: Callable[[bytes], bytes], body: bytes) -> bytes:
        began = time.thread_time()
        found = answer(body)
        self.spent_ms[verb].append(1000 * (time.thread_time() - began))
        return found


class Bare(Handlers):
    """Handlers that always give the same answer."""

    def __init__(self, living: Living, metrics: Metrics) -> None:
        counts = ExtenderCounts(metrics, ())
        super().__init__(living, lambda: Readiness(()), counts)
        names = [node["metadata"]["name"] for node in raw_nodes(NODES)]
        passing, failing = names[:_PASSING], names[_PASSING:]
        self._sifted = orjson.dumps(
            {
                "Nodes": None,
                "NodeNames": passing,
                "FailedNodes": dict.fromkeys(failing, _REASON),
                "FailedAndUnresolvableNodes": {},
                "Error": "",
            }
        )
        scores = [10, *[3] * (_PASSING - 1)]
        pairs = zip(passing, scores, strict=True)
        self._scores = orjson.dumps([{"Host": host, "Score": score} for host, score in pairs])

    def _filter(self, body: bytes) -> bytes:
        del body
        return self._sifted

    def _prioritize(self, body: bytes) -> bytes:
        del body
        return self._scores


def main() -> None:
    """Serve until SIGTERM; then write what answers and events cost to the file that is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificates", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--report", type=Path, help="a bare server without")
    options = parser.parse_args()
    catalog, metrics = build_catalog(), Metrics()
    living = Living(Model(catalog), PodReader(catalog))
    timed = Timed(living, metrics)
    handlers: Handlers = timed
    if options.report is None:
        handlers = Bare(living, metrics)
    else:
        living.fill(random.Random(1))  # noqa: S311 - the same each time
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(handlers, living, options.certificates, options.port))
    if options.report is not None:
        spent = {**timed.spent_ms, "event": living.event_ms}
        options.report.write_bytes(orjson.dumps(spent))


async def _serve(handlers: Handlers, living: Living, certificates: Path, port: int) -> None:
    files = PemFiles(certificates / "tls.crt", certificates / "tls.key")
    tls = ServerTls(files, Metrics())
    listen = Listen(host="127.0.0.1", port=port, grace=0.0)
    life = asyncio.create_task(living.live())
    with stop_on_signals() as events:
        await serve(HttpServer(handlers, tls, listen, "extender"), events)
    life.cancel()


if __name__ == "__main__":
    main()
