# SPDX-License-Identifier: Apache-2.0
"""Lists of JSON values that are told apart by what they say, at a cost that no sender can raise.

A claim and the pod that carries it may name thousands of values each; comparing all of one with
all of the other would hold up every other review for minutes.
"""

from collections.abc import Hashable, Iterable, Sequence

from policies.model.request import JsonObject

_FEW = 8
"""Comparing with so many costs less than hashing."""


def ensured(
    received: Sequence[JsonObject], claimed: Iterable[JsonObject], demanded: Iterable[JsonObject]
) -> Sequence[JsonObject]:
    """Return the list without what is claimed and with what is demanded; itself if it is so."""
    wanted = list(demanded)
    stale = [item for item in claimed if item not in wanted]
    kept = without(received, stale) if stale else received
    missing = [item for item in wanted if item not in kept]
    if len(kept) == len(received) and not missing:
        return received
    return [*kept, *missing]


def without(items: Sequence[JsonObject], others: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the items, the same objects, that equal none of the others."""
    if min(len(items), len(others)) <= _FEW:
        return [item for item in items if item not in others]
    hashed = {_hashable(item) for item in others}
    return [item for item in items if _hashable(item) not in hashed]


def _hashable(value: object) -> Hashable:
    """Return a value that equals another's if and only if the JSON values are equal in Python."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple([_hashable(item) for item in value])
    return value
