# SPDX-License-Identifier: Apache-2.0
"""What is looked at of a tenant's object: which it is, and what its status says of quota. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.quota.state import QuotaState
from reconciler.kube import raw

Object = Mapping[str, object]

FIELDS: Final = (
    *("guarantee", "ceiling", "used", "borrowed", "lent", "owed", "pending", "oldestWait"),
    *("memory", "resources", "pools", "idle"),
)
"""Fields of the status that say how a tenant stands; others write the rest."""

OVER_QUOTA: Final = "OverQuota"
OVERCOMMITTED: Final = "Overcommitted"
ODD_PODS: Final = "OddPods"
CONDITIONS: Final = (OVER_QUOTA, OVERCOMMITTED, ODD_PODS)
"""Types of conditions that say so."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One object. `status` holds our fields alone, `conditions` ours by type."""

    name: str
    uid: str
    version: int
    status: Object
    conditions: Mapping[str, Object]


def seen(item: Object) -> Seen:
    """Return the view of a raw Tenant."""
    metadata, status = raw.mapping(item, "metadata"), raw.mapping(item, "status")
    version = raw.text(metadata, "resourceVersion")
    return Seen(
        raw.text(metadata, "name"),
        raw.text(metadata, "uid"),
        int(version) if version.isascii() and version.isdecimal() else 0,
        {field: status[field] for field in FIELDS if field in status},
        {
            raw.text(condition, "type"): condition
            for condition in raw.mappings(status, "conditions")
            if condition.get("type") in CONDITIONS
        },
    )


def histories(status: Object) -> Mapping[str, Object]:
    """Return by pool the idle histories that a status holds, as the quota model reads them."""
    return {raw.text(entry, "pool"): entry for entry in raw.mappings(status, "idle")}


def inherit(state: QuotaState, item: Object) -> None:
    """Have the quota model go on with the idle histories that a raw Tenant shows."""
    found = seen(item)
    for pool, plain in histories(found.status).items():
        state.inherit_history(found.name, pool, plain)
