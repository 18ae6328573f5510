# SPDX-License-Identifier: Apache-2.0
"""A full cluster in memory that goes on changing as the extender answers, telemetry and all.

No API server: what watches would tell is told directly, each pod that is given a node is seen
bound, and an old one goes. Everything that follows from a question is the extender's own.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from policies.cluster.nodes import read_node
from policies.placement.asks import DeviceAsk
from policies.placement.model import Model
from policies.placement.occupancy import Gauge
from policies.placement.pods import PodReader
from policies.telemetry.load import DEFAULT_WEIGHTS
from policies.telemetry.smoothing import Smoothed
from policies.telemetry.views import CardTelemetry, NodeTelemetry, Values
from tests.bench.extender_load import NODES, PODS, new_pod, raw_nodes
from webhook.extender.answers import Answers
from webhook.extender.gauges import Gauges
from webhook.extender.wire import Question

_CARDS: Final = 8
_CARD_MIB: Final = 81_559.0
_MEASURED_EVERY: Final = 300
"""Questions: as if ten pods came a second, and values of all nodes each 30 s."""
_LEARN_LOOK_SECONDS: Final = 0.05
_LEARN_STEP: Final = 4


class Telling:
    """Telemetry of every card, which is another one each time."""

    def __init__(self) -> None:
        self._chance = random.Random(3)  # noqa: S311 - the same values each time

    def node(self, name: str) -> NodeTelemetry:
        """Return what is told of a node now."""
        cards = tuple(self._card(name, index) for index in range(_CARDS))
        return NodeTelemetry(name, cards)

    def _card(self, name: str, index: int) -> CardTelemetry:
        busy, used = self._chance.random(), self._chance.uniform(1_000.0, 70_000.0)
        values = Values(
            utilisation=Smoothed(busy),
            memory_used_mib=Smoothed(used),
            memory_free_mib=_CARD_MIB - used,
            memory_total_mib=_CARD_MIB,
        )
        return CardTelemetry(name, f"GPU-{name}-{index}", index, values)


class NobodyWaits:
    """No pod has been refused for load."""

    def measured(self, node: str, gauge: Gauge) -> None:
        """Do nothing."""


class Living(Answers):
    """Answers, and does after each what the cluster would do: bind the pod, and end an old one."""

    def __init__(self, model: Model, reader: PodReader) -> None:
        super().__init__(model, reader, lambda: True)
        self.event_ms: list[float] = []
        """The processor's time for each pod that was seen bound."""
        self._known: deque[str] = deque()
        self._gauges = Gauges(model, Telling(), NobodyWaits(), DEFAULT_WEIGHTS)
        self._names: list[str] = []
        self._asked = 0

    def fill(self, random_: random.Random) -> None:
        """Bring the nodes, and pods until there are enough, each to a node that has room."""
        for raw in raw_nodes(NODES):
            node = read_node(raw)
            self._names.append(node.name)
            self._model.put_node(node)
            self._gauges.put_node(node)
        for number in range(PODS):
            pod = new_pod(random_, f"old-{number}")
            asks = self._reader.read(pod).wish.ask.devices
            room = [n for n in random_.sample(self._names, 200) if self._has_room(n, asks)]
            self._bind(pod, room[0] if room else self._names[0])
        self.event_ms.clear()

    async def live(self) -> None:
        """Take up telemetry, and learn which pods are typical, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._gauges.run())
            tasks.create_task(self._learn())

    def prioritize(self, question: Question) -> Mapping[str, int]:
        """Answer, and have the pod bound soon after."""
        scores = super().prioritize(question)
        best = next((name for name, score in scores.items() if score == 10), None)
        if best is not None:
            pod = {**question.pod, "spec": {**question.pod["spec"], "nodeName": best}}
            asyncio.get_running_loop().call_soon(self._bind, pod, best)
        self._asked += 1
        if self._asked % _MEASURED_EVERY == 0:
            self._gauges.measured(self._names)
        return scores

    def _has_room(self, name: str, asks: tuple[DeviceAsk, ...]) -> bool:
        here = self._model.occupancy(name)
        return here is not None and all(here.free.get(a.resource, 0) >= a.count for a in asks)

    def _bind(self, pod: Mapping[str, Any], node: str) -> None:
        began = time.thread_time()
        spec = {**pod["spec"], "nodeName": node}
        seen = self._reader.read({**pod, "spec": spec})
        self._model.put_pod(seen)
        self.event_ms.append(1000 * (time.thread_time() - began))
        self._known.append(seen.uid)
        if len(self._known) > PODS:
            self._model.remove_pod(self._known.popleft())

    async def _learn(self) -> None:
        """Learn as the watch does."""
        while True:
            if self._model.is_learning_due:
                for number, _ in enumerate(self._model.learn()):
                    if number % _LEARN_STEP == 0:
                        await asyncio.sleep(0)
            await asyncio.sleep(_LEARN_LOOK_SECONDS)
