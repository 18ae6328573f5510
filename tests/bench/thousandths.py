# SPDX-License-Identifier: Apache-2.0
"""openb's thousandths of GPUs on a real cluster: nodes, pods, and the extender that reads them.

A thousandth of a card is one `nvidia.com/gpu.shared` of a node whose cards are shared by 1000.
kube-scheduler counts them by node. A pod's are of one card, or whole cards: so the trace means it,
and so the extender reads them here, which is all that it does otherwise than it always does. No
kubelet picks cards: each pod is taken to be on the fullest card that has as many, which is what
the simulation takes too.
"""

import argparse
import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import uvloop

from policies.cluster.nodes import Node
from policies.placement.asks import Ask, DeviceAsk
from policies.placement.model import Model, ModelSettings
from policies.placement.pods import PlacedPod, PodReader
from policies.placement.rooms import FULL_MILLI, Picking
from policies.vendors import build_catalog
from policies.vendors.nvidia import REPLICAS_LABEL, SHARED, STRATEGY_LABEL
from reconciler.kube.access import find_access
from reconciler.kube.client import Client
from reconciler.placement.watching import ModelWatch
from reconciler.runtime.health import Condition, Readiness
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.signals import stop_on_signals
from reconciler.runtime.tasks import supervise
from tests.bench.openb import GPU, milli_of
from webhook.extender.answers import Answers
from webhook.extender.handlers import Handlers
from webhook.extender.metrics import ExtenderCounts
from webhook.server import HttpServer, Listen, serve

Json = dict[str, Any]

_PODS: Final = "1000"
"""Per node; the trace knows no such bound."""


def raw_node(node: Node) -> Json:
    """Return a node of the trace as a cluster has it."""
    amounts = {
        "cpu": f"{node.allocatable['cpu']}m",
        "memory": str(node.allocatable["memory"]),
        "pods": _PODS,
        SHARED: str(node.allocatable[GPU]),
    }
    shared = {STRATEGY_LABEL: "time-slicing", REPLICAS_LABEL: str(FULL_MILLI)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": {**node.labels, **shared}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def raw_pod(name: str, ask: Ask) -> Json:
    """Return a pod of the trace as a cluster has it. It must ask for GPU, of any model."""
    amounts = dict(ask.amounts)
    limits = {
        "cpu": f"{amounts['cpu']}m",
        "memory": str(amounts["memory"]),
        SHARED: str(milli_of(ask)),
    }
    resources = {"requests": limits, "limits": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": resources}]},
    }


class CardReader(PodReader):
    """Reads so many shares as so many of one card, or as whole cards."""

    def read(self, pod: Mapping[str, object]) -> PlacedPod:
        """Return the view of a raw pod."""
        placed = super().read(pod)
        devices = tuple(_of_cards(device) for device in placed.wish.ask.devices)
        ask = replace(placed.wish.ask, devices=devices)
        return replace(placed, wish=replace(placed.wish, ask=ask))


def _of_cards(device: DeviceAsk) -> DeviceAsk:
    if device.count < FULL_MILLI:
        return replace(device, count=1, units=device.count)
    return replace(device, count=device.count // FULL_MILLI, units=FULL_MILLI)


def main() -> None:
    """Serve until SIGTERM, over plain HTTP."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(options.kubeconfig, options.port))


async def _serve(kubeconfig: Path, port: int) -> None:
    catalog, metrics = build_catalog(), Metrics()
    reader = CardReader(catalog)
    model = Model(catalog, ModelSettings(picking=Picking.PACKED))
    async with Client(find_access({}, kubeconfig=str(kubeconfig))) as client:
        watch = ModelWatch(client, model, reader)
        answers = Answers(model, reader, watch.is_live)
        counts = ExtenderCounts(metrics, model.assumed)
        handlers = Handlers(answers, lambda: _readiness(watch), counts)
        server = HttpServer(
            handlers, None, Listen(host="127.0.0.1", port=port, grace=0.0), "extender"
        )
        with stop_on_signals() as events:
            await supervise({"extender": serve(server, events), "watches": watch.run()})


def _readiness(watch: ModelWatch) -> Readiness:
    return Readiness((Condition("model-synced", ok=watch.is_synced, message="not listed yet"),))


if __name__ == "__main__":
    main()
