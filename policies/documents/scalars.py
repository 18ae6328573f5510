# SPDX-License-Identifier: Apache-2.0
"""YAML scalars read as JSON's are, numbers exactly.

Only `null`, `true`, `false` and JSON's numbers mean something when written plain. `yes`, `on`,
`010`, `1_000`, `12:30`, `~`, `.inf` and dates are text. Numbers become int, or Decimal where they
are not whole, never float. Source: RFC 8259 section 6.
"""

import re
from decimal import Decimal
from typing import Final

NULL: Final = "tag:yaml.org,2002:null"
BOOL: Final = "tag:yaml.org,2002:bool"
INT: Final = "tag:yaml.org,2002:int"
FLOAT: Final = "tag:yaml.org,2002:float"
STR: Final = "tag:yaml.org,2002:str"

_INT: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE](?P<exponent>[+-]?[0-9]+))?", re.ASCII
)
_CONSTANTS: Final = {"": NULL, "null": NULL, "true": BOOL, "false": BOOL}
_NUMBER_START: Final = frozenset("-0123456789")
# Wide enough for every Kubernetes number; a bound, since 1e999999999 is short to write.
_MAX_DIGITS: Final = 40
_MAX_EXPONENT: Final = 40


class ScalarError(ValueError):
    """A scalar that has no value as JSON; the message says why."""


def resolve_plain(text: str) -> str:
    """Return the tag of a scalar that is written without quotes and without a tag."""
    if (constant := _CONSTANTS.get(text)) is not None:
        return constant
    if text[0] not in _NUMBER_START:
        return STR
    if _INT.fullmatch(text):
        return INT
    return FLOAT if _NUMBER.fullmatch(text) else STR


def value_of(tag: str, text: str) -> bool | int | Decimal | str | None:
    """Return the value of a scalar with this tag. Raises ScalarError."""
    if tag == STR:
        return text
    if tag in (INT, FLOAT):
        return _number(tag, text)
    if tag not in (NULL, BOOL):
        raise ScalarError(f"tag {tag} is not supported: documents hold what JSON can hold")
    if _CONSTANTS.get(text) != tag:
        raise ScalarError(f"{text!r} is no {tag.rpartition(':')[2]}")
    return None if tag == NULL else text == "true"


def _number(tag: str, text: str) -> int | Decimal:
    match = (_INT if tag == INT else _NUMBER).fullmatch(text)
    if match is None:
        raise ScalarError(f"{text!r} is no number")
    exponent = match.groupdict().get("exponent") or "0"
    if len(text) > _MAX_DIGITS or abs(int(exponent)) > _MAX_EXPONENT:
        raise ScalarError("the number is out of range")
    if tag == INT:
        return int(text)
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number


def plain(value: object) -> object:
    """Return the value as the `json` module would have read it: Decimal becomes float."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
