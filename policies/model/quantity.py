# SPDX-License-Identifier: Apache-2.0
"""Kubernetes quantities, exactly as the API server reads them, as exact fractions.

Written by hand since the libraries accept what the API server refuses (`1K`, `NaN`, other
scripts' digits) and floats lose units. Grammar: apimachinery `pkg/api/resource/quantity.go`.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)"
    r"(?P<suffix>Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE](?P<exponent>[+-]?[0-9]{1,9}))?",
    re.ASCII,
)
_SCALE: Final = {
    **{
        unit: Fraction(1024) ** power
        for power, unit in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], 1)
    },
    **{
        unit: Fraction(1000) ** power
        for power, unit in enumerate(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"], -3)
    },
}
_MAX_LENGTH: Final = 64
_MAX_EXPONENT: Final = 40

MEBI: Final = 1024 * 1024


class QuantityError(ValueError):
    """Text that is no Kubernetes quantity; the message says which."""


def parse_quantity(value: object) -> Fraction:
    """Return the exact value of a quantity given as string, int or float (as YAML and CRDs do).

    Raises QuantityError for what the API server refuses at decoding, and for absurd lengths.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(f"{repr(value)[:_MAX_LENGTH]} is not a quantity")
    return _parse(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=1024)  # the same few spellings come again and again
def _parse(text: str) -> Fraction:
    match = _GRAMMAR.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise QuantityError(f"{text[:_MAX_LENGTH]!r} is not a quantity")
    exponent = match["exponent"]
    if exponent is None:
        scale = _SCALE[match["suffix"] or ""]
    elif abs(int(exponent)) <= _MAX_EXPONENT:
        scale = Fraction(10) ** int(exponent)
    else:
        raise QuantityError(f"{text!r} is out of range")
    number = match["number"]
    magnitude = Fraction(f"{number}0" if number.endswith(".") else number) * scale
    return -magnitude if match["sign"] == "-" else magnitude


def parse_mib(value: object) -> int:
    """Return memory in whole MiB, rounded up, so that a need is never understated."""
    return -(-parse_quantity(value) // MEBI)
