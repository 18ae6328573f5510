# SPDX-License-Identifier: Apache-2.0
"""Pods whose release is refused, such as by a webhook of others: what is said of them. Pure.

When they are tried again is not decided here.
"""

from dataclasses import dataclass, replace
from typing import Final

from policies.quota.planning.values import Why
from policies.quota.pods import QuotaPod
from reconciler.kube.errors import ApiError, PastTermError

LASTING_SECONDS: Final = 1.0
"""A pod whose back-off is as long as that is told of: at first it may be nothing but a restart."""

_MOST_CHARACTERS: Final = 300


@dataclass(slots=True, eq=False)
class Parked:
    """A pod as last seen, and what it says of why it waits, empty for nothing."""

    pod: QuotaPod
    text: str

    def is_only_told(self, newer: QuotaPod) -> bool:
        """Tell whether nothing but the reason on the pod has changed: that is our own doing."""
        known = self.pod
        if known.version != newer.version and known.reason == newer.reason:
            return False
        return replace(known, version=newer.version, reason=newer.reason) == newer


def text_of(error: ApiError) -> str:
    """Return what a pod says whose release failed so: `Refused: ...`, on one line and not long.

    Empty where it says nothing of the pod, but of who has sent it.
    """
    if isinstance(error, PastTermError):
        return ""
    words = "".join(c if c.isprintable() else " " for c in str(error)).split()
    return f"{Why.REFUSED}: {' '.join(words) or type(error).__name__}"[:_MOST_CHARACTERS]
