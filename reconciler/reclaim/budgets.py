# SPDX-License-Identifier: Apache-2.0
"""Follows the cluster's PodDisruptionBudgets, and tells by namespace when they change."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from policies.quota.pdb import PodDisruptionBudget
from reconciler.kube.reflector import Reflector, Runtime, Source
from reconciler.kube.store import Change
from reconciler.reclaim.view import PDBS, budget_view

_RUNTIME: Final = Runtime()

Listener = Callable[[str, Sequence[PodDisruptionBudget]], None]


class BudgetWatch:
    """All budgets while `run` runs. `changed` gets a namespace and all budgets that it now has."""

    def __init__(self, source: Source, changed: Listener, runtime: Runtime = _RUNTIME) -> None:
        self._changed = changed
        self._runtime = runtime
        self._by_namespace: dict[str, dict[str, PodDisruptionBudget]] = {}
        self._reflector = Reflector(source, PDBS, budget_view, runtime=runtime)
        self._reflector.subscribe(self._note)

    @property
    def synced(self) -> asyncio.Event:
        """Set once they have been listed."""
        return self._reflector.synced

    def seconds_since_contact(self) -> float:
        """Return how old the picture may be."""
        return self._reflector.seconds_since_contact(self._runtime.clock())

    def all(self) -> Sequence[PodDisruptionBudget]:
        """Return every budget."""
        return [pdb for found in self._by_namespace.values() for pdb in found.values()]

    async def run(self) -> None:
        """Follow them until cancelled; raises only what is a fault of our own."""
        await self._reflector.run()

    def _note(self, change: Change[PodDisruptionBudget]) -> None:
        namespace, name = change.key.namespace, change.key.name
        found = self._by_namespace.setdefault(namespace, {})
        if change.new is None:
            found.pop(name, None)
        else:
            found[name] = change.new
        listed = tuple(found.values())
        if not found:
            del self._by_namespace[namespace]
        self._changed(namespace, listed)
