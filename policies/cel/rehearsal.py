# SPDX-License-Identifier: Apache-2.0
"""A large pod made up from the types, to try an expression on when it is loaded.

What would run over its budget on a pod of 50 containers is a load error; nobody should find that
out from a refused pod. Values are made up, so nothing else can be learnt from it.
"""

from collections.abc import Mapping
from typing import Any, Final

from policies.cel.schema import LIST_MARK, MAP_MARK, TIMESTAMP, Schema
from policies.cel.variables import VARIABLES

CONTAINERS: Final = 50
_OTHERS: Final = 3
_SCALARS: Final[Mapping[str, object]] = {
    "string": "1",
    "int": 1,
    "bool": True,
    "double": 1.0,
    "dyn": 1,
    TIMESTAMP: "2026-01-01T00:00:00Z",
}


def large_review(schema: Schema) -> dict[str, Any]:
    """Return every variable with every field that its type has."""
    return {
        variable.name: _sample(schema, variable.name, variable.type)
        for variable in VARIABLES
        if variable.type in schema.messages
    }


def _sample(schema: Schema, field: str, kind: str) -> Any:
    if kind.startswith(LIST_MARK):
        length = CONTAINERS if field == "containers" else _OTHERS
        return [_sample(schema, "", kind.removeprefix(LIST_MARK))] * length
    if kind.startswith(MAP_MARK):
        return {"key": _sample(schema, "", kind.removeprefix(MAP_MARK))}
    if kind in _SCALARS:
        return _SCALARS[kind]
    return {name: _sample(schema, name, inner) for name, inner in schema.messages[kind].items()}
