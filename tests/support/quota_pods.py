# SPDX-License-Identifier: Apache-2.0
"""Views of pods as the quota model keeps them, for tests that need no raw JSON."""

from typing import Any

from policies.cluster.constraints import Constraints
from policies.cluster.fit import FitShape
from policies.quota.pods import Phase, QuotaPod, Shape

ANYWHERE = Constraints()
SHAPE = Shape(fit=FitShape((("pods", 1),), ANYWHERE), claimed=True)


def waiting_pod(uid: str, **changes: Any) -> QuotaPod:
    """Return a pod that waits for quota; its name is `pod-<uid>`."""
    fields: dict[str, Any] = {
        "namespace": "chat",
        "name": f"pod-{uid}",
        "uid": uid,
        "version": "1",
        "created_at": 1000,
        "phase": Phase.WAITING,
        "shape": SHAPE,
    }
    return QuotaPod(**(fields | changes))
