# SPDX-License-Identifier: Apache-2.0
"""How long to wait after the n-th failure in a row.

Pure: the random source is an argument. Waiting itself is not here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Uniform = Callable[[float, float], float]
"""Draws a float between two bounds, as random.uniform does."""

_MAX_DOUBLINGS: Final = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubling delays from `first_seconds` to `cap_seconds`, spread so that replicas part ways."""

    first_seconds: float = 0.5
    cap_seconds: float = 30.0

    def seconds(self, failures: int, uniform: Uniform) -> float:
        """Return the delay after that many failures in a row: half to all of the doubled one."""
        doublings = min(max(failures - 1, 0), _MAX_DOUBLINGS)
        full = min(self.cap_seconds, self.first_seconds * 2**doublings)
        return uniform(full / 2, full)


DEFAULT_BACKOFF: Final = Backoff()
