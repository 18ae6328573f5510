# SPDX-License-Identifier: Apache-2.0
"""Times in documents, which YAML reads as text: RFC 3339 with a zone, nothing else."""

import re
from datetime import UTC, datetime
from typing import Final

# RFC 3339 section 5.6, with its one separator that everybody writes.
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_FRACTION: Final = re.compile(r"\.(\d{1,6})\d*", re.ASCII)


def parse_time(text: str) -> datetime | None:
    """Return the time in UTC, to the microsecond, or None if the text is none."""
    if _TIME.fullmatch(text) is None:
        return None
    try:
        # The standard library reads microseconds only.
        return datetime.fromisoformat(_FRACTION.sub(r".\1", text)).astimezone(UTC)
    except (ValueError, OverflowError):  # no such day, or a year that only its zone makes possible
        return None
