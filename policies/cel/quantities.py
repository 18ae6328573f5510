# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' quantity library for CEL, on exact fractions.

Source: kubernetes/apiserver `pkg/cel/library/quantity.go`. No engine can carry a type of our own,
so a quantity travels as a map that holds its exact value; equal quantities are equal maps.
Nothing here knows an engine.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from policies.model.quantity import QuantityError, parse_quantity

_KEY: Final = "kubernetes.Quantity"
_INT64: Final = 1 << 63

Quantity = Mapping[str, object]


class FunctionError(ValueError):
    """A call that has no value by Kubernetes' rules; the message is for the policy's author."""


def quantity(text: str) -> dict[str, object]:
    """Parse what the API server takes as a quantity. Raises FunctionError."""
    try:
        return _wrap(parse_quantity(text))
    except QuantityError as error:
        raise FunctionError(str(error)) from error


def is_quantity(text: str) -> bool:
    """Tell whether `quantity` would take the text."""
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def sign(value: Quantity) -> int:
    """Return 1, 0 or -1."""
    number = _unwrap(value)
    return (number > 0) - (number < 0)


def is_greater_than(left: Quantity, right: Quantity) -> bool:
    """Tell whether the left is more, by value."""
    return _unwrap(left) > _unwrap(right)


def is_less_than(left: Quantity, right: Quantity) -> bool:
    """Tell whether the left is less, by value."""
    return _unwrap(left) < _unwrap(right)


def compare_to(left: Quantity, right: Quantity) -> int:
    """Return 1, 0 or -1: the sign of left - right."""
    one, other = _unwrap(left), _unwrap(right)
    return (one > other) - (one < other)


def as_approximate_float(value: Quantity) -> float:
    """Return the nearest double; the longest text of a quantity is within its range."""
    return float(_unwrap(value))


def as_integer(value: Quantity) -> int:
    """Return the value as int64. Raises FunctionError for fractions and overflow."""
    if not is_integer(value):
        raise FunctionError("cannot convert value to integer")
    return int(_unwrap(value))


def is_integer(value: Quantity) -> bool:
    """Tell whether `as_integer` would succeed."""
    number = _unwrap(value)
    return number.denominator == 1 and -_INT64 <= number < _INT64


def add(left: Quantity, right: Quantity | int) -> dict[str, object]:
    """Return the exact sum; the right may be an integer."""
    return _wrap(_unwrap(left) + _number(right))


def sub(left: Quantity, right: Quantity | int) -> dict[str, object]:
    """Return the exact difference; the right may be an integer."""
    return _wrap(_unwrap(left) - _number(right))


def _number(value: Quantity | int) -> Fraction:
    return Fraction(value) if isinstance(value, int) else _unwrap(value)


def _wrap(value: Fraction) -> dict[str, object]:
    return {_KEY: str(value)}


def _unwrap(value: Quantity) -> Fraction:
    text = value.get(_KEY)
    if not isinstance(text, str):
        raise FunctionError("not a quantity: use quantity()")
    return Fraction(text)
