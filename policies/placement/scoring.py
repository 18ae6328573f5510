# SPDX-License-Identifier: Apache-2.0
"""Which of the nodes that hold a pod gets it: exactly one gets 10, so that no tie is left to luck.

kube-scheduler adds up whole numbers from 0 to 10 and breaks ties at random, which would undo most
of what fragmentation gradient descent gains. Which nodes hold a pod must not be decided here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import Final, TypeAlias, TypeVar

from policies.placement.outlook import Outlook

T = TypeVar("T", int, Outlook)

HIGHEST: Final = 10
"""The most that an extender may give. Source: kubernetes extender/v1 MaxExtenderPriority."""


class Strategy(StrEnum):
    """Which nodes come first; as a `DeschedulePolicy` says it."""

    PACK = "Pack"
    """Fill nodes up so that others stay whole: for low load."""
    SPREAD = "Spread"
    """Keep pods apart: for high load."""


KEY_NAMES: Final[Mapping[Strategy, tuple[str, ...]]] = {
    Strategy.PACK: (
        "too small",
        "fragmentation",
        "GPU left",
        "load",
        "topology",
        "replicas",
        "CPU left",
        "tasks",
    ),
    Strategy.SPREAD: (
        "too small",
        "load",
        "replicas",
        "GPU taken",
        "topology",
        "fragmentation",
        "CPU taken",
        "tasks",
    ),
}
"""What the numbers of a key are, in their order; of each, less is better."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What else is known of nodes, by name.

    `load` is in thousandths and `topology` what the pod would lose there in thousandths: a node
    that is not in them is taken for one in the middle of those that are. `replicas` are pods of the
    same service on the node, `tasks` all of its GPU pods: none where not known.
    """

    load: Mapping[str, int] = field(default_factory=dict)
    topology: Mapping[str, int] = field(default_factory=dict)
    replicas: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, int] = field(default_factory=dict)


Key: TypeAlias = tuple[int, ...]
"""What a node is ordered by."""

Choose: TypeAlias = Callable[[Sequence[str]], str]
"""Takes one of several names: `min` always the same, `random.choice` any."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Nodes from best to worst, and the key of each for those who ask why."""

    order: tuple[str, ...]
    keys: Mapping[str, Key]

    @property
    def scores(self) -> Mapping[str, int]:
        """Return 10 for the best, and 9 to 0 by rank for the others."""
        count = len(self.order) - 1
        scores = {name: HIGHEST - 1 - HIGHEST * i // count for i, name in enumerate(self.order[1:])}
        return dict.fromkeys(self.order[:1], HIGHEST) | scores


def rank(
    outlooks: Mapping[str, Outlook | None],
    signals: Signals,
    strategy: Strategy = Strategy.PACK,
    choose: Choose = min,
) -> Ranking:
    """Order nodes by name; `choose` decides between those that are equally best.

    One that is not known (None) is taken for one in the middle. One that seems too small comes
    last and is not left out: whoever asks may know better.
    """
    keys = _keys(outlooks, signals, strategy)
    order = sorted(keys, key=keys.__getitem__)
    if order:
        best = keys[order[0]]
        tied = tuple(takewhile(lambda name: keys[name] == best, order))
        if len(tied) > 1:
            winner = choose(tied)
            order.remove(winner)
            order.insert(0, winner)
    return Ranking(tuple(order), keys)


def _keys(
    outlooks: Mapping[str, Outlook | None], signals: Signals, strategy: Strategy
) -> dict[str, Key]:
    load, topology, replicas, tasks = (
        signals.load,
        signals.topology,
        signals.replicas,
        signals.tasks,
    )
    middle_load = _middle([load[name] for name in outlooks if name in load], 0)
    middle_topology = _middle([topology[name] for name in outlooks if name in topology], 0)
    middle = _middle([outlook for outlook in outlooks.values() if outlook], Outlook())
    keys: dict[str, Key] = {}
    for name, outlook in outlooks.items():
        is_too_small, gradient, gpu, cpu = outlook or middle
        hot, far = load.get(name, middle_load), topology.get(name, middle_topology)
        same, many = replicas.get(name, 0), tasks.get(name, 0)
        if strategy is Strategy.PACK:
            keys[name] = (is_too_small, gradient, gpu, hot, far, same, cpu, many)
        else:
            keys[name] = (is_too_small, hot, same, -gpu, far, gradient, -cpu, many)
    return keys


def _middle(values: list[T], default: T) -> T:
    """Return the median, the upper one of two; the default of none."""
    return sorted(values)[len(values) // 2] if values else default
