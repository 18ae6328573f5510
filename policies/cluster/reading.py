# SPDX-License-Identifier: Apache-2.0
"""Reads nodes and pods that are stored already, where an odd field must not stop a watch.

Workloads that advice is given on are read so too: it must not stop anybody.

A field of a wrong type reads as absent, and an amount that is none as said below; nothing raises.
Exact types, as parsers of JSON make them, since every change of a pod passes here.
Pods under review are read by `policies.pod`, which refuses what is malformed.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import ceil
from typing import Final

from policies.model.quantity import QuantityError, parse_quantity

CPU: Final = "cpu"
PODS: Final = "pods"

MOST: Final = 2**63 - 1
"""The largest amount that Kubernetes can tell; what cannot be read counts as this much asked."""

_NOTHING: Final[Mapping[str, object]] = {}


def mapping(parent: Mapping[str, object], *path: str) -> Mapping[str, object]:
    """Return the object at a path of fields, empty where there is none."""
    for field in path:
        value = parent.get(field)
        if not isinstance(value, dict):
            return _NOTHING
        parent = value
    return parent


def mappings(parent: Mapping[str, object], field: str) -> Iterator[Mapping[str, object]]:
    """Yield the objects of a list field."""
    values = parent.get(field)
    if isinstance(values, list):
        yield from (value for value in values if isinstance(value, dict))


def text(parent: Mapping[str, object], field: str) -> str:
    """Return a string field, empty where there is none."""
    value = parent.get(field)
    return value if isinstance(value, str) else ""


def asked(amounts: Mapping[str, object]) -> dict[str, int]:
    """Return a list of requests in base units; what cannot be read fits nowhere (MOST)."""
    found = {}
    for name, value in amounts.items():
        units = _units(name, value) if isinstance(value, str | int | float) else None
        found[name] = MOST if units is None else units
    return found


def offered(amounts: Mapping[str, object]) -> dict[str, int]:
    """Return what a node offers in base units; what cannot be read is nothing."""
    found = {}
    for name, value in amounts.items():
        units = _units(name, value) if isinstance(value, str | int | float) else None
        found[name] = units or 0
    return found


@lru_cache(maxsize=4096, typed=True)  # the same few amounts come again and again
def _units(name: str, value: str | float) -> int | None:
    """Return milli-CPU, bytes or a count, rounded up as kube-scheduler does; None if not one.

    Source: kubernetes pkg/scheduler/framework/types.go Resource.Add, Quantity.Value.
    """
    try:
        quantity = parse_quantity(value)
    except QuantityError:
        return None
    units = ceil(quantity * 1000 if name == CPU else quantity)
    return min(units, MOST) if units >= 0 else None
