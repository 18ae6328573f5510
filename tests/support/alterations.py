# SPDX-License-Identifier: Apache-2.0
"""Undoes a rewrite, one value at a time, to see whether each of them is demanded."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from tests.support.builders import Json
from tests.support.strategies import unshared

_ABSENT: Final = object()
Place: TypeAlias = tuple[Any, ...]


def added(old: Any, new: Any) -> Iterator[Place]:
    """Yield the place of every value, however deep, that is in the new pod and not in the old."""
    if isinstance(new, dict):
        pairs = [(key, old.get(key, _ABSENT) if isinstance(old, dict) else _ABSENT) for key in new]
    elif isinstance(old, list) and len(old) == len(new):
        pairs = list(enumerate(old))
    else:
        kept = old if isinstance(old, list) else []
        pairs = [(index, item if item in kept else _ABSENT) for index, item in enumerate(new)]
    for key, before in pairs:
        if before is _ABSENT:
            yield (key,)
        if isinstance(new[key], dict | list):
            yield from ((key, *place) for place in added(before, new[key]))
        elif before is not _ABSENT and before != new[key]:
            yield (key,)


def alterations(found: Json, place: Place) -> Iterator[Json]:
    """Yield the pod without the value at a place, and with another there."""
    for remove in (True, False):
        altered: Json = unshared(found)
        parent: Any = altered
        for step in place[:-1]:
            parent = parent[step]
        if remove:
            del parent[place[-1]]
        elif isinstance(parent[place[-1]], str):
            parent[place[-1]] += "x"
        else:
            continue
        yield altered
