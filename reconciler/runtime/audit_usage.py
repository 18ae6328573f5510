# SPDX-License-Identifier: Apache-2.0
"""What the audit log says of GPUs charged in a span of time, as lines of JSON.

One line for each tenant, pool and sharing mode. Reading them is a matter of `sluice usage`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

KIND: Final = "usage"
_OPTIONS: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """GPUs times seconds, in millionths, between two times. The default pool's name is empty."""

    begin: datetime
    end: datetime
    tenant: str
    pool: str
    mode: str
    micro_gpu_seconds: int


def to_line(entry: UsageEntry) -> bytes:
    """Return the line with its line feed. `time` comes first, as in every line of the log."""
    record = {
        "time": entry.end.astimezone(UTC),
        "kind": KIND,
        "from": entry.begin.astimezone(UTC),
        "until": entry.end.astimezone(UTC),
        "tenant": entry.tenant,
        "pool": entry.pool,
        "mode": entry.mode,
        "microGpuSeconds": entry.micro_gpu_seconds,
    }
    return orjson.dumps(record, option=_OPTIONS)
