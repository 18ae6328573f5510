# SPDX-License-Identifier: Apache-2.0
"""What becomes of every node for one pod: why it is out, or where it stands and what it lost by.

By the same code as the scheduler extender's answers; kube-scheduler's own checks come first, as
far as `policies.cluster` knows them. Its other plugins, and that it looks at a part of many nodes
only, are not told here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policies.cluster.report import why_unfit
from policies.cluster.shape import FitShape
from policies.placement.filtering import DEFAULT_LIMITS, Limits, why_refused
from policies.placement.merging import TOO_SMALL
from policies.placement.model import Model
from policies.placement.occupancy import Occupancy
from policies.placement.pods import PlacedPod
from policies.placement.scoring import KEY_NAMES, Ranking, Strategy

EQUAL: Final = "name, as good as the best"
"""What a node lost by that is no worse in anything."""

OTHER_STRATEGY: Final = "strategy: nodes that are packed come first"
"""What a node lost by that pods are kept apart on, where the best one is packed."""


@dataclass(frozen=True, slots=True)
class Out:
    """Nodes, in name order, that are out for one reason; `by_extender` if not by their room."""

    reason: str
    nodes: tuple[str, ...]
    by_extender: bool


@dataclass(frozen=True, slots=True)
class Stand:
    """A node that would take the pod, its score, and what it lost by; empty for the best.

    `strategy` is that by which its pool is ranked for such a pod.
    """

    name: str
    score: int
    lost_by: str
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class Verdicts:
    """All nodes: those in the running, the best first, and the others, the most of a kind first."""

    standing: tuple[Stand, ...]
    out: tuple[Out, ...]

    @property
    def nodes(self) -> int:
        """Return how many there are."""
        return len(self.standing) + sum(len(each.nodes) for each in self.out)

    @property
    def lost(self) -> Mapping[str, int]:
        """Return how many nodes lost by what, the most first."""
        found: dict[str, int] = {}
        for each in self.standing[1:]:
            found[each.lost_by] = found.get(each.lost_by, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def judge_nodes(
    model: Model,
    pod: PlacedPod,
    shapes: Sequence[FitShape],
    limits: Limits = DEFAULT_LIMITS,
) -> Verdicts:
    """Return the verdicts on all nodes of a model that the pod itself is not in.

    `shapes` are the ways in which it may be put on a node, one of which must fit.
    """
    out: dict[tuple[str, bool], list[str]] = {}
    able = []
    for name in model.nodes():
        here = model.occupancy(name)
        if here is None:
            continue
        why = _why_out(here, pod, shapes, limits)
        if why is None:
            able.append(name)
        else:
            out.setdefault(why, []).append(name)
    ordered = sorted(out.items(), key=lambda item: (-len(item[1]), item[0]))
    groups = (Out(reason, tuple(names), extends) for (reason, extends), names in ordered)
    return Verdicts(tuple(_standing(model, pod, able)), tuple(groups))


def _why_out(
    here: Occupancy, pod: PlacedPod, shapes: Sequence[FitShape], limits: Limits
) -> tuple[str, bool] | None:
    """Return the reason, and whether it is the extender's; None for a node that may get it."""
    reasons = [why_unfit(shape, here.node, here.free) for shape in shapes]
    if reasons and all(reasons):
        return reasons[0], False
    refusal = why_refused(pod.wish, here, limits)
    return None if refusal is None else (refusal.reason, True)


def _standing(model: Model, pod: PlacedPod, names: Sequence[str]) -> Iterable[Stand]:
    ranking = model.rank(pod.wish, names, pod.service) if names else None
    if ranking is None:
        return
    scores, strategies, lost = ranking.scores, ranking.strategies, _losses(ranking)
    for name in ranking.order:
        yield Stand(name, scores[name], lost[name], strategies[name])


def _losses(ranking: Ranking) -> Mapping[str, str]:
    """Return what each node lost by against the best, which lost by nothing."""
    best = ranking.order[0]
    first = ranking.keys[best]
    chosen = ranking.strategies[best]
    found: dict[str, str] = {}
    for table in ranking.tables:
        is_same = table.strategy is chosen
        names = KEY_NAMES[table.strategy]
        # Of other strategies nothing else can be compared.
        compared = range(len(names)) if is_same else (TOO_SMALL,)
        rest = EQUAL if is_same else OTHER_STRATEGY
        for name, key in table.keys.items():
            found[name] = next((names[i] for i in compared if key[i] != first[i]), rest)
    return found | {best: ""}
