# SPDX-License-Identifier: Apache-2.0
"""Events on namespaces that another tenant owns than before, by their labels or by policies.

Whose pods count for whom is decided elsewhere; this only says so.
"""

import logging
from typing import Final

from reconciler.cluster import Move
from reconciler.kube.events import EventType, Regarding
from reconciler.quota.told import Recorder

_LOG: Final = logging.getLogger(__name__)
_REASON: Final = "TenantChanged"
_ACTION: Final = "Count"


class MoveTeller:
    """Tells of each move once, where its people see it: among the namespace's own Events."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def tell(self, move: Move) -> None:
        """Record a move."""
        name, note = move.namespace, note_of(move)
        kind = EventType.NORMAL if move.new else EventType.WARNING
        self._recorder.record(Regarding("Namespace", name, name, ""), _REASON, note, kind, _ACTION)
        _LOG.info("namespace %s %s", name, note)


def note_of(move: Move) -> str:
    """Return what is said of a move."""
    before = _tenant(move.old)
    if move.new:
        return f"belonged to {before}; all of its GPU pods count for {_tenant(move.new)} now"
    owners = " and ".join(move.claimants)
    after = f"is claimed by tenants {owners}" if owners else "belongs to no tenant"
    return (
        f"belonged to {before} and {after} now: what was charged goes on counting for who was "
        "charged, and what waits is not released"
    )


def _tenant(name: str) -> str:
    return f"tenant {name}" if name else "no tenant"
