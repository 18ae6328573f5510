# SPDX-License-Identifier: Apache-2.0
"""Write policies/cel/data/pod.json: the fields of a Pod, that CEL expressions are checked against.

It stands outside the core since it reads the API client's models, which the core may not import.
Run it after an update of kubernetes-asyncio: `python -m tests.support.generate_pod_schema`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

import kubernetes_asyncio
from kubernetes_asyncio.client import models

TARGET: Final = Path(__file__).parents[2] / "policies" / "cel" / "data" / "pod.json"
_ROOT: Final = "V1Pod"
_SCALARS: Final = {
    "str": "string",
    "int": "int",
    "bool": "bool",
    "float": "double",
    "datetime": "timestamp",
}
_DYNAMIC: Final = frozenset({"object", "IntOrString"})
_LIST: Final = re.compile(r"list\[(.+)\]")
_MAP: Final = re.compile(r"dict\(str, (.+)\)")


class _Model(Protocol):
    openapi_types: dict[str, str]
    attribute_map: dict[str, str]


def render() -> str:
    """Return the file's text for the installed version of the API client."""
    messages = dict(sorted(_messages()))
    version = kubernetes_asyncio.__version__
    document = {"source": f"kubernetes-asyncio {version}", "root": _ROOT, "messages": messages}
    return json.dumps(document, indent=1) + "\n"


def _messages() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield every message that a Pod can reach, with its fields in JSON spelling."""
    waiting, seen = [_ROOT], {_ROOT}
    while waiting:
        name = waiting.pop()
        model: _Model = getattr(models, name)
        fields = {
            model.attribute_map[attribute]: _type(declared)
            for attribute, declared in model.openapi_types.items()
        }
        yield name, dict(sorted(fields.items()))
        reached = {kind.lstrip("[]{}") for kind in fields.values()}
        for message in sorted(reached - seen):
            if hasattr(models, message):
                waiting.append(message)
                seen.add(message)


def _type(declared: str) -> str:
    """Translate one declared type: `[]T` is a list, `{}T` a map from strings."""
    if match := _LIST.fullmatch(declared):
        return f"[]{_type(match[1])}"
    if match := _MAP.fullmatch(declared):
        return f"{{}}{_type(match[1])}"
    if declared in _SCALARS:
        return _SCALARS[declared]
    if declared in _DYNAMIC or not hasattr(models, declared):
        return "dyn"
    return declared


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
