# SPDX-License-Identifier: Apache-2.0
"""Which nodes a pod should prefer when it is released, where the scheduler asks no extender.

The ranking is the extender's; its moment is the release, so that what happens until the pod is
bound is not seen. How it is written on the pod must not be here.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from policies.cluster.constraints import admits
from policies.placement.model import Model
from policies.placement.occupancy import Occupancy
from policies.placement.pods import PlacedPod, PodReader
from reconciler.placement.settings import PlacementSettings

_LOG: Final = logging.getLogger(__name__)


class Preferences:
    """Ranks the nodes of a model. `is_live` tells whether it is true to the cluster now."""

    def __init__(
        self,
        model: Model,
        reader: PodReader,
        is_live: Callable[[], bool],
        settings: PlacementSettings,
        clock: Callable[[], float],
    ) -> None:
        self._model = model
        self._reader = reader
        self._is_live = is_live
        self._most = settings.preferred_nodes
        self._clock = clock

    def __call__(self, raw: Mapping[str, object]) -> Sequence[str]:
        """Return the names of the best nodes for a pod as it will be released, the best first.

        The first is taken for given to it. Never raises: one that prefers nothing is released too.
        """
        try:
            return self._best(self._reader.read(raw))
        except Exception:  # noqa: BLE001 - whatever it was, pods must be released
            _LOG.exception("nodes could not be ranked; the pod is released without a preference")
            return ()

    def _best(self, pod: PlacedPod) -> Sequence[str]:
        model, now = self._model, self._clock()
        model.expire(now)
        if not self._is_live() or not pod.uid or not pod.wish.ask.devices:
            return ()
        model.forget(pod.uid)
        refused = model.sieve(pod.wish).refusals
        names = [name for name in model.nodes() if name not in refused]
        ranking = model.rank(pod.wish, names, pod.service)
        # Few of the first are looked at: to look at all nodes takes longer than to rank them.
        order = ranking.order if ranking is not None else ()
        best = tuple(islice((name for name in order if self._holds(name, pod)), self._most))
        if best:
            model.assume(pod, best[0], now)
        return best

    def _holds(self, name: str, pod: PlacedPod) -> bool:
        """Tell what the scheduler would tell before it asks an extender."""
        here, ask = self._model.occupancy(name), pod.wish.ask
        return here is not None and admits(ask.constraints, here.node) and _has(here, ask.amounts)


def _has(here: Occupancy, amounts: Sequence[tuple[str, int]]) -> bool:
    return all(here.free.get(name, 0) >= amount for name, amount in amounts)
