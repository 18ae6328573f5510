# SPDX-License-Identifier: Apache-2.0
"""Colours and letters that tell tenants apart, the same for the same tenants everywhere.

White text on every colour has a contrast of at least 4.5 (WCAG 2.2, 1.4.3); where there are more
tenants than colours, the later ones are striped as well, and letters tell all of them apart.
"""

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

COLOURS: Final = (
    *("#0067a5", "#b3440e", "#11703a", "#8a2d6b", "#7a5c00", "#4b3fb0"),
    *("#b0304f", "#006e75", "#6b4226", "#4d6600", "#9c27b0", "#455a64"),
)
"""Dark hues in an order in which neighbours differ, also for those who see few colours."""

FREE: Final = "#dcdcdc"
LINE: Final = "#6e6e6e"
TEXT: Final = "#1a1a1a"
PAPER: Final = "#ffffff"

NO_TENANT: Final = "no tenant"

_LETTERS: Final = string.ascii_uppercase + string.ascii_lowercase + string.digits
_OTHERS: Final = "#"


@dataclass(frozen=True, slots=True)
class Look:
    """How a tenant is shown: its letter, its colour, and how often that was used before."""

    letter: str
    colour: str
    stripes: int = 0


def looks(tenants: Iterable[str]) -> Mapping[str, Look]:
    """Return the look of each tenant, in name order; pods of none are grey and `-`."""
    found = {}
    for number, tenant in enumerate(sorted(set(tenants) - {""})):
        letter = _LETTERS[number] if number < len(_LETTERS) else _OTHERS
        stripes, index = divmod(number, len(COLOURS))
        found[tenant] = Look(letter, COLOURS[index], stripes)
    if "" in tenants:
        found[""] = Look("-", LINE)
    return found


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21. Source: WCAG 2.2, contrast ratio."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Return the relative luminance. Source: WCAG 2.2."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]  # noqa: PLR2004 - sRGB
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
