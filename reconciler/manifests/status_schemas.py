# SPDX-License-Identifier: Apache-2.0
"""The `status` of each kind, from the JSON Schemas in `status/`.

`common.json` is what every kind has; `<kind in lower case>.json` is what one kind has beside it.
Who writes a status is not known here.
"""

import json
from importlib import resources
from typing import Any

from policies.documents.kinds import Kind

Object = dict[str, object]


def status_schema(kind: Kind) -> Object:
    """Return the structural schema of a kind's status."""
    common = _read("common")
    own = _read(kind.lower()) if _file(kind.lower()).is_file() else {"properties": {}}
    return {**common, "properties": {**own["properties"], **common["properties"]}}


def _read(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(_file(name).read_text(encoding="utf-8"))
    return read


def _file(name: str) -> Any:
    return resources.files("reconciler.manifests").joinpath("status", f"{name}.json")
