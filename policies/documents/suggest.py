# SPDX-License-Identifier: Apache-2.0
"""'Did you mean': the known name that is closest to a mistyped one."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from policies.documents.problems import quoted

_CUTOFF: Final = 0.6
# Comparing grows with the square of the length, and no known name is longer than a DNS-1123 name.
_MAX_LENGTH: Final = 63


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name most like the word whatever its case, or None if none is near."""
    if len(word) > _MAX_LENGTH:
        return None
    by_lower = {name.lower(): name for name in sorted(known, reverse=True)}
    found = get_close_matches(word.lower(), sorted(by_lower), n=1, cutoff=_CUTOFF)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return the question to put behind a message, or None if no known name is near."""
    found = closest(word, known)
    return None if found is None else f"did you mean {quoted(found)}?"
