# SPDX-License-Identifier: Apache-2.0
"""What a pod asks of a node, as a value that all pods alike share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.cluster.constraints import Constraints


@dataclass(frozen=True, slots=True)
class FitShape:
    """Requests by resource name in base units (sorted, none is zero), and the constraints.

    Its hash is kept, since shapes are looked up for every pod.
    """

    requests: tuple[tuple[str, int], ...]
    constraints: Constraints
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.requests, self.constraints)))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, requests: Mapping[str, int], constraints: Constraints) -> "FitShape":
        """Return the shape of requests as `read_requests` gives them."""
        return cls(tuple(sorted((n, a) for n, a in requests.items() if a > 0)), constraints)

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the extended resources that are asked, in name order: those with a domain."""
        return tuple(name for name, _ in self.requests if "/" in name)
