# SPDX-License-Identifier: Apache-2.0
"""JSON Patch (RFC 6902) from one object to another that shares its unchanged parts.

A general differ costs milliseconds a review and may name values that nobody changed; here parts
that are the same object are skipped, so the cost is that of the change. Only the making is done
here: the API server applies it, and tests apply it with an independent library.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from operator import is_

Operation = Mapping[str, object]

_ABSENT = object()


def diff(old: object, new: object) -> tuple[Operation, ...]:
    """Return the operations that turn old into new, in an order in which they apply."""
    operations: list[Operation] = []
    _diff(old, new, "", operations)
    return tuple(operations)


def _diff(old: object, new: object, path: str, found: list[Operation]) -> None:
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        _diff_objects(old, new, path, found)
    elif isinstance(old, list) and isinstance(new, list):
        _diff_lists(old, new, path, found)
    elif type(old) is not type(new) or old != new:
        found.append({"op": "replace", "path": path, "value": new})


def _diff_objects(
    old: Mapping[str, object], new: Mapping[str, object], path: str, found: list[Operation]
) -> None:
    if len(old.keys() & new.keys()) < len(old):
        gone = (key for key in old if key not in new)
        found.extend({"op": "remove", "path": f"{path}/{_escape(key)}"} for key in gone)
    for key, value in new.items():
        before = old.get(key, _ABSENT)
        if before is value:
            continue
        if before is _ABSENT:
            found.append({"op": "add", "path": f"{path}/{_escape(key)}", "value": value})
        else:
            _diff(before, value, f"{path}/{_escape(key)}", found)


def _diff_lists(
    old: Sequence[object], new: Sequence[object], path: str, found: list[Operation]
) -> None:
    if len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            if before is not after:
                _diff(before, after, f"{path}/{index}", found)
        return
    if len(old) < len(new) and all(map(is_, old, new)):  # only added to
        added = enumerate(new[len(old) :], len(old))
        found.extend({"op": "add", "path": f"{path}/{i}", "value": item} for i, item in added)
        return
    kept = _kept(old, new)
    found.extend(
        {"op": "remove", "path": f"{path}/{index}"}
        for index in range(len(old) - 1, -1, -1)
        if index not in kept
    )
    standing = deque(old[index] for index in kept)
    for index, item in enumerate(new):
        if standing and standing[0] is item:
            standing.popleft()
        else:
            found.append({"op": "add", "path": f"{path}/{index}", "value": item})


def _kept(old: Sequence[object], new: Sequence[object]) -> Collection[int]:
    """Return where the old list has items that stand in the new one, in the same order."""
    places: dict[int, deque[int]] = {}
    for at, item in enumerate(new):
        places.setdefault(id(item), deque()).append(at)
    kept: dict[int, None] = {}
    nowhere: deque[int] = deque()
    start = 0
    for index, item in enumerate(old):
        waiting = places.get(id(item), nowhere)
        while waiting and waiting[0] < start:
            waiting.popleft()
        if waiting:
            start = waiting.popleft() + 1
            kept[index] = None
    return kept


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
