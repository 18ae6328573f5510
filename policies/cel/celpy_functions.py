# SPDX-License-Identifier: Apache-2.0
"""The functions of CEL for cel-python, which has the standard library alone.

It knows one function per name, so the receiver's type decides here where libraries share a name;
`sets`, `lists` and `strings` are values to it, whose functions get them as their first argument.
"""

import operator
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import base_functions

from policies.cel import list_extensions, strings
from policies.cel.functions import FUNCTIONS
from policies.cel.lists import cel_equal
from policies.cel.meter import Meter, tree_size


class Namespace(celtypes.StringType):
    """What `sets` in `sets.contains(a, b)` is: a prefix of names, which this engine evaluates."""


NAMESPACES: Final = frozenset({"lists", "sets", "strings"})

_OF_STRINGS: Final[Mapping[str, Callable[..., Any]]] = {
    "charAt": strings.char_at,
    "indexOf": strings.index_of,
    "lastIndexOf": strings.last_index_of,
    "lowerAscii": strings.lower_ascii,
    "replace": strings.replace,
    "split": strings.split,
    "substring": strings.substring,
    "trim": strings.trim,
    "upperAscii": strings.upper_ascii,
}
_OF_LISTS: Final[Mapping[str, Callable[..., Any]]] = {
    **{function.name: function.implementation for function in FUNCTIONS},
    "distinct": list_extensions.distinct,
    "flatten": list_extensions.flatten,
    "join": strings.join,
    "reverse": list_extensions.reverse,
    "slice": list_extensions.part,
    "sort": list_extensions.sort,
}
_OF_NAMESPACES: Final[Mapping[str, Callable[..., Any]]] = {
    "contains": list_extensions.contains,
    "equivalent": list_extensions.equivalent,
    "intersects": list_extensions.intersects,
    "quote": strings.quote,
    "range": list_extensions.number_range,
}
_BOOL: Final = celtypes.BoolType
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
NAMES: Final = frozenset({*base_functions, *_OF_STRINGS, *_OF_LISTS, *_OF_NAMESPACES})


def functions(meter: Meter) -> dict[str, Callable[..., Any]]:
    """Return the functions that an evaluation may call, each charging the meter."""
    own = {name: _adapted(name, meter) for name in (*_OF_STRINGS, *_OF_LISTS, *_OF_NAMESPACES)}
    return {
        **own,
        "_+_": _metered(base_functions["_+_"], meter),
        "_==_": _equal,
        "_!=_": lambda left, right: celtypes.BoolType(not _equal(left, right)),
        "_[_]": _item,
        "_in_": _is_in,
        "string": _string,
        **{name: _compared(name, compare) for name, compare in _COMPARISONS.items()},
    }


def _equal(left: Any, right: Any) -> celtypes.BoolType:
    """Compare values of any two types, as CEL does since it has cross-type equality."""
    try:
        return celtypes.BoolType(cel_equal(to_plain(left), to_plain(right)))
    except TypeError:  # types have no plain form
        return celtypes.BoolType(left == right)


def _compared(name: str, compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """Return an order that also holds between kinds of numbers, as in Kubernetes since 1.28."""

    def call(left: Any, right: Any) -> Any:
        if all(
            isinstance(side, int | float) and not isinstance(side, _BOOL) for side in (left, right)
        ):
            return celtypes.BoolType(compare(to_plain(left), to_plain(right)))
        return base_functions[name](left, right)

    return call


def _item(owner: Any, key: Any) -> Any:
    """Return an item; unlike Python's, a position below 0 is outside the list."""
    if isinstance(owner, list) and key < 0:
        raise IndexError(f"index out of bounds: {key}")
    return owner[key]


def _is_in(item: Any, owner: Any) -> celtypes.BoolType:
    """Tell whether a list holds an item, or a map has a key; texts hold nothing."""
    if not isinstance(owner, list | dict):
        raise TypeError("no such overload")
    return celtypes.BoolType(any(_equal(item, part) for part in owner))


def _string(value: Any) -> celtypes.StringType:
    """Write a value out as Kubernetes does: `true`, and doubles without a needless fraction."""
    if isinstance(value, _BOOL):
        return celtypes.StringType("true" if value else "false")
    if isinstance(value, float):
        return celtypes.StringType(f"{value:.17g}" if value.is_integer() else repr(float(value)))
    return celtypes.StringType(value)


def to_plain(value: Any) -> Any:
    """Return a value of the engine as plain Python. Raises TypeError for types and functions."""
    match value:
        case None | bool():
            return value
        case celtypes.BoolType():
            return bool(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case str():
            return str(value)
        case bytes():
            return bytes(value)
        case list():
            return [to_plain(item) for item in value]
        case dict():
            return {to_plain(key): to_plain(item) for key, item in value.items()}
        case datetime() | timedelta():
            return value
    raise TypeError(f"{type(value).__name__} is no data")


def _adapted(name: str, meter: Meter) -> Callable[..., Any]:
    """Return the function of a name for all receivers that have one."""

    def call(first: Any, *rest: Any) -> Any:
        if isinstance(first, Namespace):
            function, arguments = _OF_NAMESPACES[name], rest
        elif isinstance(first, str) and name in _OF_STRINGS:
            function, arguments = _OF_STRINGS[name], (first, *rest)
        elif name in _OF_LISTS:
            function, arguments = _OF_LISTS[name], (first, *rest)
        elif name in base_functions:
            return base_functions[name](first, *rest)
        else:
            raise TypeError(f"no such overload: {name}")
        plain = [to_plain(argument) for argument in arguments]
        meter.charge(_cost(name, plain))
        result = function(*plain)
        meter.charge(tree_size(result))
        return json_to_cel(result)

    return call


def _cost(name: str, arguments: list[Any]) -> int:
    """Return what a call may make beyond a few times its arguments, before it is made."""
    match name, arguments:
        case "replace", [str() as text, str() as old, str() as new, *_]:
            parts = len(text) // len(old) if old else len(text) + 1
            return len(text) + parts * len(new)
        case "range", [int() as size]:
            return max(size, 0)
        case "distinct", [list() as values]:
            return len(values) ** 2
        case (("contains" | "equivalent" | "intersects"), [list() as left, list() as right]):
            return len(left) * len(right)
    return 0


def _metered(function: Callable[..., Any], meter: Meter) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        result = function(*arguments)
        meter.charge(tree_size(result))
        return result

    return call
