# SPDX-License-Identifier: Apache-2.0
"""Paths into objects: `spec.pytorchReplicaSpecs.*.template`, `spec.workerGroupSpecs[*].template`.

`*` stands for every value of a map, `[*]` for every item of a list. What is not there is not
found, whatever has another type than the path expects: objects of custom kinds may be anything.
"""

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from policies.model.workload import Factor, Path, Wildcard

Place: TypeAlias = tuple[str | int, ...]
"""What each wildcard of a path stands for, in order: a map's key or a list's index."""

_STEP: Final = re.compile(r"\[\*\]|[^.\[\]]+")
_WILDCARDS: Final = frozenset(map(str, Wildcard))


def parse_path(text: str) -> Path:
    """Return the path that a text means. The schema of `Settings` has its syntax."""
    return tuple(Wildcard(s) if s in _WILDCARDS else s for s in _STEP.findall(text))


def parse_factor(text: str) -> Factor:
    """Return the factor that a text means: a path, or a path and what is taken off (`a.b - 1`)."""
    path, _, less = text.partition(" - ")
    return Factor(parse_path(path), int(less) if less else 0)


def find(path: Path, value: object) -> Iterator[tuple[Place, object]]:
    """Yield everything that lies at a path, with what its wildcards stand for."""
    if value is None:
        return
    if not path:
        yield (), value
        return
    step, rest = path[0], path[1:]
    for key, inner in _children(step, value):
        own = (key,) if isinstance(step, Wildcard) else ()
        for place, found in find(rest, inner):
            yield (*own, *place), found


def _children(step: str | Wildcard, value: object) -> Iterator[tuple[str | int, object]]:
    if step is Wildcard.ITEMS:
        if isinstance(value, list):
            yield from enumerate(value)
    elif isinstance(value, dict):
        if step is Wildcard.VALUES:
            yield from value.items()
        elif step in value:
            yield step, value[step]


def get(path: Path, place: Place, value: object) -> object | None:
    """Return what lies at a path whose wildcards stand for these; None if nothing does."""
    left = list(place)
    for step in path:
        key = left.pop(0) if isinstance(step, Wildcard) else step
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def prefix(path: Path) -> Path:
    """Return a path up to its last wildcard, or nothing where it has none."""
    ends = [index for index, step in enumerate(path, 1) if isinstance(step, Wildcard)]
    return path[: ends[-1]] if ends else ()


def shares_wildcards(path: Path, other: Path) -> bool:
    """Tell whether every wildcard of a path is one of the other's, at the same place."""
    start = prefix(path)
    return other[: len(start)] == start
