# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler is answered: by the model while it is live, and neutrally else.

Neutral means that every node passes and that none is better than another: the scheduler then does
what it would do without. How questions come in must not be here.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from policies.placement.filtering import Refusal
from policies.placement.model import Model, Release
from policies.placement.pods import PlacedPod, PodReader
from policies.placement.preempting import acceptable
from policies.placement.sieves import Sieve
from webhook.extender.wire import Preemption, Question, Raw, Sifted, Victims


class Answers:
    """Answers by one model. `is_live` tells whether the model is true to the cluster now.

    `refused_for_load` is told each node that was refused since its cards do or hold too much;
    `kept_out` when any was refused for whatever reason; `released` each node that a pod counted on
    which was never seen bound.
    """

    def __init__(
        self,
        model: Model,
        reader: PodReader,
        is_live: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.refused_for_load: Callable[[str, Refusal], None] = lambda _node, _refusal: None
        self.kept_out: Callable[[float], None] = lambda _now: None
        self.released: Callable[[Release], None] = lambda _release: None
        self._model = model
        self._reader = reader
        self._is_live = is_live
        self._clock = clock
        self._last: tuple[Raw, PlacedPod] | None = None

    def filter(self, question: Question) -> Sifted:
        """Return which nodes may get the pod. A single one is taken for given to it."""
        pod = self._pod(question)
        if pod is None:
            return Sifted(question.names)
        # Asked again, it was not bound where it was put last, and may not come there again.
        before = self._model.forget(pod.uid)
        if before is not None:
            self.released(before)
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
            ranking = self._model.rank(pod.wish, question.names, pod.service)
        if pod is None or ranking is None:
            return dict.fromkeys(question.names, 0)
        # Another scheduler may have been given a node since filter passed it for this one.
        ranking = ranking.with_last(self._model.sieve(pod.wish).refusals)
        self._model.assume(pod, ranking.order[0], self._clock())
        return ranking.scores

    def choose(self, question: Question) -> Sifted:
        """Return the one node that the pod is to get: filter and prioritize at once.

        All that pass are left where the model has no opinion.
        """
        sifted = self.filter(question)
        if len(sifted.names) <= 1:
            return sifted
        scores = self.prioritize(Question(question.pod, tuple(sifted.names)))
        best = max(scores, key=scores.__getitem__)
        return replace(sifted, names=(best,)) if scores[best] else sifted

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

    def expire(self) -> None:
        """Take back the assumptions whose time is over."""
        for release in self._model.expire(self._clock()):
            self.released(release)

    def _pod(self, question: Question) -> PlacedPod | None:
        """Return the pod of a question that is to be answered by the model."""
        self.expire()
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
        refused = sieve.refusals
        self.kept_out(self._clock())
        for name in sieve.hot & offered:
            self.refused_for_load(name, refused[name])
        return Sifted(
            [name for name in names if name not in refused],
            _only(sieve.failed, offered),
            _only(sieve.unresolvable, offered),
        )


def _only(reasons: Mapping[str, str], offered: AbstractSet[str]) -> Mapping[str, str]:
    """Return the reasons of nodes that are offered; all at once where all are, as is usual."""
    if reasons.keys() <= offered:
        return reasons
    return {name: reasons[name] for name in reasons.keys() & offered}
