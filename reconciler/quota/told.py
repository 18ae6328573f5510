# SPDX-License-Identifier: Apache-2.0
"""Events on pods that wait for what only people can change: nodes, gangs' counts, refusals.

Each is told once, and again only after a while; whatever else a pod waits for stands on the pod.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from policies.quota.planning.values import Plan, Why
from policies.quota.pods import QuotaPod
from reconciler.kube.events import EventType, Regarding

_AGAIN_SECONDS: Final = 600.0
_OF_NODES: Final = frozenset({Why.NO_ROOM, Why.NO_SUCH_NODE})
_ACTION: Final = "Release"
_GANG_PROBLEM: Final = "GangProblem"
_REFUSED: Final = "ReleaseRefused"
_MOST: Final = 5
"""Of a gang, so many pods get the Event: a thousand equal ones help nobody."""


class Recorder(Protocol):
    """Where Events are handed in."""

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        type: EventType,  # noqa: A002 - the API's own name
        action: str,
    ) -> None:
        """Take an Event; never waits and never fails."""
        ...


class Teller:
    """Tells what plans show. Times are monotonic seconds."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told: dict[tuple[str, str], float] = {}

    def tell(self, plan: Plan, now: float) -> None:
        """Record what has not been told lately, and forget what no longer holds."""
        told: dict[tuple[str, str], float] = {}
        for pod, reason, note in _noteworthy(plan):
            key = (pod.uid, reason)
            last = self._told.get(key)
            if last is None or now - last >= _AGAIN_SECONDS:
                regarding = Regarding("Pod", pod.namespace, pod.name, pod.uid)
                self._recorder.record(regarding, reason, note, EventType.WARNING, _ACTION)
                last = now
            told[key] = last
        self._told = told

    def tell_refused(self, pod: QuotaPod, text: str) -> None:
        """Record that a pod's release is refused; equal texts are one Event with a count."""
        regarding = Regarding("Pod", pod.namespace, pod.name, pod.uid)
        self._recorder.record(regarding, _REFUSED, text, EventType.WARNING, _ACTION)


def _noteworthy(plan: Plan) -> Iterator[tuple[QuotaPod, str, str]]:
    for wait in plan.waits:
        if wait.hold.why in _OF_NODES:
            # Those behind it wait for the same.
            yield wait.pods[0], str(wait.hold.why), wait.hold.text
    for problem in plan.problems:
        for pod in _first(problem.pods):
            yield pod, _GANG_PROBLEM, problem.text


def _first(pods: Iterable[QuotaPod]) -> Iterator[QuotaPod]:
    yield from sorted(pods, key=lambda pod: (pod.created_at, pod.name))[:_MOST]
