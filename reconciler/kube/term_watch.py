# SPDX-License-Identifier: Apache-2.0
"""The newest term of the leader's Lease, watched. What it is good for is not known here."""

from policies.model.term import LeaseTerm
from reconciler.kube.lease import lease_term
from reconciler.kube.reflector import Reflector, Source
from reconciler.kube.resources import LEASES, Selection
from reconciler.kube.store import Change


class TermWatch:
    """The newest term that was seen, while `run` runs.

    It outlives the Lease: one that was deleted has been held all the same. A watch that is out of
    touch does no harm, for terms only grow.
    """

    def __init__(self, source: Source, namespace: str, name: str) -> None:
        selection = Selection(LEASES, namespace, field_selector=f"metadata.name={name}")
        self._reflector = Reflector(source, selection, lease_term)
        self._reflector.subscribe(self._changed)
        self._newest: LeaseTerm | None = None

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._reflector.run()

    def term(self) -> LeaseTerm | None:
        """Return it; None until a Lease was seen."""
        return self._newest

    def _changed(self, change: Change[LeaseTerm]) -> None:
        self._newest = change.new or self._newest
