# SPDX-License-Identifier: Apache-2.0
"""Ways to score nodes, side by side: none, best-fit, and the code that Sluice's extender runs."""

import random
from collections.abc import Mapping, Sequence

from policies.cluster.nodes import Node
from policies.placement.asks import Ask
from policies.placement.fgd import Fragmentation
from policies.placement.popularity import Popularity
from policies.placement.rooms import Room
from policies.placement.scorer import Scorer
from policies.placement.scoring import HIGHEST
from tests.bench.openb import GPU, Trace, milli_of


class AnyNode:
    """Every node is as good as another, which leaves it to the scheduler's own luck."""

    def arrived(self, ask: Ask) -> None:
        pass

    def scores(self, ask: Ask, names: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(names, 0)

    def placed(self, node: Node, free: Mapping[str, int], room: Room) -> None:
        pass


class BestFit:
    """The node with least GPU and CPU left, each as a part of the largest node's; one winner.

    Source: hkust-adsl/kubernetes-scheduler-simulator pkg/simulator/plugin/best_fit_score.go.
    """

    def __init__(self, trace: Trace, chance: random.Random) -> None:
        self._most_cpu = max(node.allocatable["cpu"] for node in trace.nodes)
        self._most_gpu = max(node.allocatable[GPU] for node in trace.nodes)
        self._chance = chance
        self._free: dict[str, float] = {}

    def arrived(self, ask: Ask) -> None:
        pass

    def scores(self, ask: Ask, names: Sequence[str]) -> Mapping[str, int]:
        # A pod takes the same from each node, so that what is free decides.
        least = min(self._free[name] for name in names)
        winner = self._chance.choice([name for name in names if self._free[name] == least])
        return dict.fromkeys(names, 0) | {winner: HIGHEST}

    def placed(self, node: Node, free: Mapping[str, int], room: Room) -> None:
        self._free[node.name] = free["cpu"] / self._most_cpu + room.free_milli / self._most_gpu


class Sluice:
    """The scorer, told beforehand which pods are typical, as the published results were made."""

    def __init__(self, trace: Trace, chance: random.Random) -> None:
        self._scorer = Scorer(Fragmentation(_all_of(trace).typical()))
        self._chance = chance

    def arrived(self, ask: Ask) -> None:
        pass

    def scores(self, ask: Ask, names: Sequence[str]) -> Mapping[str, int]:
        return self._scorer.rank(ask, names, choose=self._chance.choice).scores

    def placed(self, node: Node, free: Mapping[str, int], room: Room) -> None:
        self._scorer.put(node, free, room.devices)


class OnlyGpuPods(Sluice):
    """The scorer, asked about pods with GPUs only; the others are spread by CPU and memory.

    So a scheduler does whose extender manages names of resources. Source: kubernetes
    plugins/noderesources/least_allocated.go.
    """

    def __init__(self, trace: Trace, chance: random.Random) -> None:
        super().__init__(trace, chance)
        self._part_free: dict[str, float] = {}

    def scores(self, ask: Ask, names: Sequence[str]) -> Mapping[str, int]:
        if ask.devices:
            return super().scores(ask, names)
        most = max(self._part_free[name] for name in names)
        return {name: HIGHEST if self._part_free[name] == most else 0 for name in names}

    def placed(self, node: Node, free: Mapping[str, int], room: Room) -> None:
        super().placed(node, free, room)
        self._part_free[node.name] = sum(free[name] / node.allocatable[name] for name in free)


class Learning:
    """The scorer, which knows nothing beforehand and learns from the pods that arrive."""

    def __init__(self, trace: Trace, chance: random.Random) -> None:
        del trace
        self._popularity = Popularity()
        self._learnt_at = 0
        self._scorer = Scorer(Fragmentation(()))
        self._chance = chance
        self._nodes: dict[str, tuple[Node, Mapping[str, int], Room]] = {}

    def arrived(self, ask: Ask) -> None:
        self._popularity.see(ask, milli_of(ask))
        if self._popularity.is_due(self._learnt_at):
            self._learnt_at = self._popularity.seen
            self._scorer = Scorer(Fragmentation(self._popularity.typical()))
            for node, free, room in self._nodes.values():
                self._scorer.put(node, free, room.devices)

    def scores(self, ask: Ask, names: Sequence[str]) -> Mapping[str, int]:
        return self._scorer.rank(ask, names, choose=self._chance.choice).scores

    def placed(self, node: Node, free: Mapping[str, int], room: Room) -> None:
        self._nodes[node.name] = node, free, room
        self._scorer.put(node, free, room.devices)


def _all_of(trace: Trace) -> Popularity:
    return Popularity((ask, milli_of(ask)) for ask in trace.asks)
