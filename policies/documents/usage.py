# SPDX-License-Identifier: Apache-2.0
"""What a tenant uses, read from the status of its custom resource, as the leader writes it.

Where a field is odd it reads as nothing: nobody's edit of a status may stop a decision.
"""

from collections.abc import Mapping
from typing import Final

from policies.cluster.reading import mapping, mappings, text
from policies.model.quantity import QuantityError, parse_mib, parse_quantity
from policies.model.usage import TenantUsage

_MILLI: Final = 1000


def tenant_usage(item: Mapping[str, object]) -> tuple[str, TenantUsage] | None:
    """Return a raw Tenant's name and usage; None for one whose status has not been written yet."""
    status = mapping(item, "status")
    if "used" not in status:
        return None
    pools = {text(pool, "name"): _milli(pool.get("used")) for pool in mappings(status, "pools")}
    resources = mapping(status, "resources")
    return text(mapping(item, "metadata"), "name"), TenantUsage(
        pools or {"": _milli(status.get("used"))},
        _mib(mapping(status, "memory").get("used")),
        {name: _count(mapping(resources, name).get("used")) for name in resources},
        _count(status.get("pending")),
    )


def _milli(value: object) -> int:
    try:
        return max(0, int(parse_quantity(value) * _MILLI))
    except QuantityError:
        return 0


def _mib(value: object) -> int:
    try:
        return max(0, parse_mib(value))
    except QuantityError:
        return 0


def _count(value: object) -> int:
    return max(0, value) if type(value) is int else 0
