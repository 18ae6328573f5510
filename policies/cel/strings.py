# SPDX-License-Identifier: Apache-2.0
"""The string library of CEL's extensions, for the engine that lacks it.

Source: cel-go `ext/strings.go`. Positions count code points. Nothing here knows an engine.
"""

from collections.abc import Sequence
from typing import Final

from policies.cel.quantities import FunctionError

_ASCII_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_ASCII_UPPER: Final = {code + 32: code for code in _ASCII_LOWER}
_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def char_at(text: str, index: int) -> str:
    """Return the character there, or nothing right behind the end."""
    return text[_position(text, index) : index + 1]


def index_of(text: str, wanted: str, start: int = 0) -> int:
    """Return the first position of a part at or after the start, or -1."""
    return text.find(wanted, _position(text, start))


def last_index_of(text: str, wanted: str, start: int | None = None) -> int:
    """Return the last position of a part at or before the start, or -1."""
    if start is None:
        return text.rfind(wanted)
    return text.rfind(wanted, 0, _position(text, start) + len(wanted))


def join(texts: Sequence[str], separator: str = "") -> str:
    """Put texts together. Raises TypeError for what is no text."""
    return separator.join(texts)


def lower_ascii(text: str) -> str:
    """Lower the letters A to Z alone."""
    return text.translate(_ASCII_LOWER)


def upper_ascii(text: str) -> str:
    """Raise the letters a to z alone."""
    return text.translate(_ASCII_UPPER)


def quote(text: str) -> str:
    """Return the text as a CEL literal in double quotes."""
    return f'"{text.translate(_ESCAPES)}"'


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """Replace at most so many parts, all of them below 0."""
    return text.replace(old, new, max(limit, -1))


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """Split into at most so many parts, all of them below 0; by nothing: into characters."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit > len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def substring(text: str, start: int, end: int | None = None) -> str:
    """Return the part from start to before the end."""
    last = _position(text, len(text) if end is None else end)
    if _position(text, start) > last:
        raise FunctionError(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


def trim(text: str) -> str:
    """Take white space off both ends."""
    return text.strip()


def _position(text: str, index: int) -> int:
    if not 0 <= index <= len(text):
        raise FunctionError(f"index out of range: {index}")
    return index
