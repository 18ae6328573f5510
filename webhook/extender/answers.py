# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler is answered: by the model while it is live, and neutrally else.

Neutral means that every node passes and that none is better than another: the scheduler then does
what it would do without. How questions come in must not be here.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from policies.placement.model import Model
from policies.placement.pods import PlacedPod, PodReader
from policies.placement.preempting import acceptable
from policies.placement.scoring import Strategy
from policies.placement.sieves import Sieve
from webhook.extender.wire import Preemption, Question, Raw, Sifted, Victims


class Spreading(StrEnum):
    """Which nodes come first. Auto packs while the cluster has little to do, else spreads."""

    PACK = "Pack"
    SPREAD = "Spread"
    AUTO = "Auto"


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """`spread_above` is the cluster's mean load, in thousandths, from which on Auto spreads.

    It packs again `slack` below that.
    """

    strategy: Spreading = Spreading.PACK
    spread_above: int = 700
    slack: int = 100


_SETTINGS: Final = AnswerSettings()


class Answers:
    """Answers by one model. `is_live` tells whether the model is true to the cluster now.

    `refused_for_load` is told each node that was refused since its cards do too much.
    """

    def __init__(
        self,
        model: Model,
        reader: PodReader,
        is_live: Callable[[], bool],
        settings: AnswerSettings = _SETTINGS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.refused_for_load: Callable[[str], None] = lambda _node: None
        self._model = model
        self._reader = reader
        self._is_live = is_live
        self._settings = settings
        self._clock = clock
        self._spreads = False
        self._last: tuple[Raw, PlacedPod] | None = None

    def filter(self, question: Question) -> Sifted:
        """Return which nodes may get the pod. A single one is taken for given to it."""
        pod = self._pod(question)
        if pod is None:
            return Sifted(question.names)
        self._model.forget(pod.uid)
        sifted = self._sift(question.names, self._model.sieve(pod.wish))
        if len(sifted.names) == 1:
            # Of one node no scores are asked.
            self._model.assume(pod, sifted.names[0], self._clock())
        return sifted

    def prioritize(self, question: Question) -> Mapping[str, int]:
        """Return scores: 10 for one node, which then counts as given to the pod."""
        pod = self._pod(question)
        ranking = None
        if pod is not None:
            self._model.forget(pod.uid)
            ranking = self._model.rank(
                pod.wish, question.names, pod.service, self._strategy(pod.wish.is_exclusive)
            )
        if pod is None or ranking is None:
            return dict.fromkeys(question.names, 0)
        self._model.assume(pod, ranking.order[0], self._clock())
        return ranking.scores

    def preempt(self, question: Preemption) -> Mapping[str, Victims]:
        """Return the nodes that pods may be taken off, with the victims that were proposed."""
        model, wish = self._model, self._reader.read(question.pod).wish
        is_live = self._is_live()
        nodes = acceptable(
            question.victims,
            model.pod,
            lambda node, uids: not is_live or model.holds_without(wish, node, uids),
        )
        return {node: question.victims[node] for node in nodes}

    def _pod(self, question: Question) -> PlacedPod | None:
        """Return the pod of a question that is to be answered by the model."""
        now = self._clock()
        self._model.expire(now)
        if not self._is_live():
            return None
        pod = self._read(question.pod)
        return pod if pod.uid and pod.wish.ask.devices else None

    def _read(self, raw: Raw) -> PlacedPod:
        """Return the view of a pod; prioritize is asked about the one that filter was."""
        if self._last is None or self._last[0] != raw:
            self._last = (raw, self._reader.read(raw))
        return self._last[1]

    def _sift(self, names: Sequence[str], sieve: Sieve) -> Sifted:
        if not sieve.refusals:
            return Sifted(names)
        offered = set(names)
        for name in sieve.hot & offered:
            self.refused_for_load(name)
        refused = sieve.refusals
        return Sifted(
            [name for name in names if name not in refused],
            _only(sieve.failed, offered),
            _only(sieve.unresolvable, offered),
        )

    def _strategy(self, is_exclusive: bool) -> Strategy:
        """Return the strategy; exclusive pods are always packed, since they heat nobody's card."""
        match self._settings.strategy:
            case Spreading.PACK:
                return Strategy.PACK
            case Spreading.SPREAD:
                return Strategy.PACK if is_exclusive else Strategy.SPREAD
        load, bound = self._model.load(), self._settings.spread_above
        if load is not None:
            self._spreads = load >= (bound - self._settings.slack if self._spreads else bound)
        return Strategy.SPREAD if self._spreads and not is_exclusive else Strategy.PACK


def _only(reasons: Mapping[str, str], offered: AbstractSet[str]) -> Mapping[str, str]:
    """Return the reasons of nodes that are offered; all at once where all are, as is usual."""
    if reasons.keys() <= offered:
        return reasons
    return {name: reasons[name] for name in reasons.keys() & offered}
