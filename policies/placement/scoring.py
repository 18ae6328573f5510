# SPDX-License-Identifier: Apache-2.0
"""Which of the nodes that hold a pod gets it: exactly one gets 10, so that no tie is left to luck.

kube-scheduler adds up whole numbers from 0 to 10 and breaks ties at random, which would undo most
of what fragmentation gradient descent gains. Which nodes hold a pod must not be decided here.
"""

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from typing import Final, TypeAlias, TypeVar, cast

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
class KeyTable:
    """The keys of nodes that are ranked by one strategy: their numbers, in the order `names`.

    Keys are put together for those who ask why; few do.
    """

    strategy: Strategy
    names: Sequence[str]
    columns: tuple[Sequence[int], ...]

    @property
    def keys(self) -> Mapping[str, Key]:
        """Return what each node was ordered by."""
        return dict(zip(self.names, zip(*self.columns, strict=True), strict=True))


@dataclass(frozen=True, slots=True)
class Ranking:
    """Nodes from best to worst, and what they were ordered by: a table for each strategy."""

    order: tuple[str, ...]
    tables: tuple[KeyTable, ...]

    @property
    def keys(self) -> Mapping[str, Key]:
        """Return what each node was ordered by, among those of the same strategy."""
        return {name: key for table in self.tables for name, key in table.keys.items()}

    @property
    def strategies(self) -> Mapping[str, Strategy]:
        """Return by which strategy each node was ranked."""
        return {name: table.strategy for table in self.tables for name in table.names}

    def with_last(self, names: Container[str]) -> "Ranking":
        """Return the same with these after all others."""
        last = [name for name in self.order if name in names]
        if not last:
            return self
        first = (name for name in self.order if name not in names)
        return replace(self, order=(*first, *last))

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
    names = tuple(outlooks)
    if not names:
        return Ranking((), ())
    columns = _columns(outlooks, signals, strategy)
    # What is the same of all nodes decides nothing; mostly that is half of the columns.
    telling = [column for column in columns if column.count(column[0]) != len(names)]
    keys: Sequence[Key] = list(zip(*telling, strict=True)) or [()] * len(names)
    order = sorted(range(len(names)), key=keys.__getitem__)
    best = keys[order[0]]
    tied = tuple(takewhile(lambda index: keys[index] == best, order))
    if len(tied) > 1:
        by_name = {names[index]: index for index in tied}
        winner = by_name[choose(tuple(by_name))]
        order.remove(winner)
        order.insert(0, winner)
    table = KeyTable(strategy, names, columns)
    return Ranking(tuple([names[index] for index in order]), (table,))


def _columns(
    outlooks: Mapping[str, Outlook | None], signals: Signals, strategy: Strategy
) -> tuple[Sequence[int], ...]:
    """Return what keys are made of, column by column, which takes a third of the time."""
    is_too_small, gradient, gpu, cpu = zip(*_without_gaps(outlooks.values()), strict=True)
    load = _column(signals.load, outlooks, None)
    topology = _column(signals.topology, outlooks, None)
    replicas = _column(signals.replicas, outlooks, 0)
    tasks = _column(signals.tasks, outlooks, 0)
    if strategy is Strategy.PACK:
        return is_too_small, gradient, gpu, load, topology, replicas, cpu, tasks
    gpu_taken, cpu_taken = [-left for left in gpu], [-left for left in cpu]
    return is_too_small, load, replicas, gpu_taken, topology, gradient, cpu_taken, tasks


def _without_gaps(outlooks: Collection[Outlook | None]) -> Collection[Outlook]:
    """Return the outlooks with the median of those of large enough nodes where one is None."""
    if None not in outlooks:
        return cast("Collection[Outlook]", outlooks)
    known = [outlook for outlook in outlooks if outlook is not None]
    middle = _middle([outlook for outlook in known if not outlook.is_too_small], Outlook())
    return [outlook or middle for outlook in outlooks]


def _column(known: Mapping[str, int], names: Collection[str], default: int | None) -> Sequence[int]:
    """Return what is known of each node, else the default, which is the median where it is None."""
    if not known:
        return (0,) * len(names)
    found = list(map(known.get, names))
    if None not in found:
        return cast("list[int]", found)
    if default is None:
        default = _middle([value for value in found if value is not None], 0)
    return [default if value is None else value for value in found]


def _middle(values: list[T], default: T) -> T:
    """Return the median, the upper one of two; the default of none."""
    return sorted(values)[len(values) // 2] if values else default
