# SPDX-License-Identifier: Apache-2.0
"""The functions that Sluice adds to the engine's own: one table that engines and reference read.

To add a function: write it engine-free beside `lists.py`, then list it here. Types are CEL's
names; `Quantity` is a type of its own to the checker and a map at run time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from policies.cel import lists, quantities
from policies.cel.variables import QUANTITY

QUANTITY_LIBRARY: Final = "Kubernetes quantity"
LISTS_LIBRARY: Final = "Kubernetes lists"
_NUMBERS: Final = ("int", "uint", "double")
_SUMMABLE: Final = (*_NUMBERS, "duration")
_COMPARABLE: Final = (*_SUMMABLE, "bool", "timestamp", "string", "bytes")


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature; for a member, the first parameter is the receiver."""

    parameters: tuple[str, ...]
    result: str
    member: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """One function: all its overloads share the implementation, which looks at its arguments."""

    name: str
    library: str
    implementation: Callable[..., Any]
    overloads: tuple[Overload, ...]
    description: str


def _element_wise(kinds: tuple[str, ...], result: str | None = None) -> tuple[Overload, ...]:
    """Return one overload for lists of each kind; the result is an element unless it is named."""
    return tuple(Overload((f"list({kind})",), result or kind) for kind in kinds)


_COMPARE: Final = (QUANTITY, QUANTITY)
_ARITHMETIC: Final = (
    Overload((QUANTITY, QUANTITY), QUANTITY),
    Overload((QUANTITY, "int"), QUANTITY),
)
_OF_LIST: Final = (Overload(("list(dyn)", "dyn"), "int"),)

FUNCTIONS: Final = (
    Function(
        "quantity",
        QUANTITY_LIBRARY,
        quantities.quantity,
        (Overload(("string",), QUANTITY, member=False),),
        "A quantity as the API server reads it; an error if it is none.",
    ),
    Function(
        "isQuantity",
        QUANTITY_LIBRARY,
        quantities.is_quantity,
        (Overload(("string",), "bool", member=False),),
        "Whether `quantity` takes it.",
    ),
    Function(
        "sign",
        QUANTITY_LIBRARY,
        quantities.sign,
        (Overload((QUANTITY,), "int"), Overload((QUANTITY,), "int", member=False)),
        "1, 0 or -1.",
    ),
    Function(
        "isGreaterThan",
        QUANTITY_LIBRARY,
        quantities.is_greater_than,
        (Overload(_COMPARE, "bool"),),
        "Exact comparison.",
    ),
    Function(
        "isLessThan",
        QUANTITY_LIBRARY,
        quantities.is_less_than,
        (Overload(_COMPARE, "bool"),),
        "Exact comparison.",
    ),
    Function(
        "compareTo",
        QUANTITY_LIBRARY,
        quantities.compare_to,
        (Overload(_COMPARE, "int"),),
        "1, 0 or -1.",
    ),
    Function(
        "asApproximateFloat",
        QUANTITY_LIBRARY,
        quantities.as_approximate_float,
        (Overload((QUANTITY,), "double"),),
        "The nearest double.",
    ),
    Function(
        "asInteger",
        QUANTITY_LIBRARY,
        quantities.as_integer,
        (Overload((QUANTITY,), "int"),),
        "The value; an error for fractions and beyond 64 bits.",
    ),
    Function(
        "isInteger",
        QUANTITY_LIBRARY,
        quantities.is_integer,
        (Overload((QUANTITY,), "bool"),),
        "Whether `asInteger` has a value.",
    ),
    Function("add", QUANTITY_LIBRARY, quantities.add, _ARITHMETIC, "The exact sum."),
    Function("sub", QUANTITY_LIBRARY, quantities.sub, _ARITHMETIC, "The exact difference."),
    Function(
        "isSorted",
        LISTS_LIBRARY,
        lists.is_sorted,
        _element_wise(_COMPARABLE, "bool"),
        "Whether no element is less than the one before.",
    ),
    Function("sum", LISTS_LIBRARY, lists.total, _element_wise(_SUMMABLE), "The sum; 0 of nothing."),
    Function(
        "min",
        LISTS_LIBRARY,
        lists.minimum,
        _element_wise(_COMPARABLE),
        "The least element; an error if there is none.",
    ),
    Function(
        "max",
        LISTS_LIBRARY,
        lists.maximum,
        _element_wise(_COMPARABLE),
        "The greatest element; an error if there is none.",
    ),
    Function("indexOf", LISTS_LIBRARY, lists.index_of, _OF_LIST, "The first position, or -1."),
    Function(
        "lastIndexOf", LISTS_LIBRARY, lists.last_index_of, _OF_LIST, "The last position, or -1."
    ),
    Function(
        "includes",
        LISTS_LIBRARY,
        lists.includes,
        (Overload(("dyn", "dyn"), "bool"),),
        "Whether a list holds the value, or a single value is it.",
    ),
)
