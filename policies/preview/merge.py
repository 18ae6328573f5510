# SPDX-License-Identifier: Apache-2.0
"""JSON merge patch (RFC 7386), in which test cases say how their pod differs from a file's."""

from collections.abc import Mapping

from policies.model.request import JsonObject


def merged(target: JsonObject, patch: Mapping[str, object]) -> JsonObject:
    """Return the target with the patch merged in; null takes a field out."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            old = result.get(key)
            result[key] = merged(old if isinstance(old, dict) else {}, value)
        else:
            result[key] = value
    return result
