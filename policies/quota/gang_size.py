# SPDX-License-Identifier: Apache-2.0
"""How many pods a gang says it has, as its annotation spells it."""

from typing import Final

MOST_IN_GANG: Final = 100_000


def read_gang_size(text: str) -> int | None:
    """Return a number from 1 to `MOST_IN_GANG` in ASCII digits; None for anything else."""
    if not (text.isascii() and text.isdecimal()):
        return None
    size = int(text[:7])
    return size if 0 < size <= MOST_IN_GANG else None
