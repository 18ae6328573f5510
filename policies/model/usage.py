# SPDX-License-Identifier: Apache-2.0
"""What tenants use, as the leader last wrote it into their status: a snapshot, never exact."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """`milli_by_pool` is milli-GPU; `memory_mib` and `counts` (by resource name) are of all pools.

    `pending` is how many of its pods wait.
    """

    milli_by_pool: Mapping[str, int] = field(default_factory=dict)
    memory_mib: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    pending: int = 0
