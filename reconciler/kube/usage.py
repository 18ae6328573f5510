# SPDX-License-Identifier: Apache-2.0
"""What tenants use, watched in the status of their custom resources.

Where these are not served, nothing is known. Whoever writes them is not known here.
"""

from collections.abc import Mapping
from typing import Final

from policies.documents.kinds import Kind
from policies.model.quantity import QuantityError, parse_mib, parse_quantity
from policies.model.usage import TenantUsage
from reconciler.kube import raw
from reconciler.kube.document_resources import resource_of
from reconciler.kube.served import ServedSettings, ServedWatch, Server

_SETTINGS: Final = ServedSettings()
_MILLI: Final = 1000

Named = tuple[str, TenantUsage]


class UsageWatch:
    """The newest usage of each tenant, while `run` runs."""

    def __init__(self, server: Server, settings: ServedSettings = _SETTINGS) -> None:
        views = {resource_of(Kind.TENANT): tenant_usage}
        self._watch: ServedWatch[Named] = ServedWatch(server, views, settings)
        self._usage: Mapping[str, TenantUsage] | None = None
        self._watch.subscribe(self._forget)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._watch.run()

    def usage(self) -> Mapping[str, TenantUsage]:
        """Return it by tenant's name; the same object as long as nothing has changed."""
        if self._usage is None:
            self._usage = dict(self._watch.values())
        return self._usage

    def _forget(self) -> None:
        self._usage = None


def tenant_usage(item: Mapping[str, object]) -> Named | None:
    """Return a raw Tenant's name and usage; None for one whose status has not been written yet."""
    status = raw.mapping(item, "status")
    if "used" not in status:
        return None
    pools = {
        raw.text(pool, "name"): _milli(pool.get("used")) for pool in raw.mappings(status, "pools")
    }
    resources = raw.mapping(status, "resources")
    return raw.text(raw.mapping(item, "metadata"), "name"), TenantUsage(
        pools or {"": _milli(status.get("used"))},
        _mib(raw.mapping(status, "memory").get("used")),
        {name: _count(raw.mapping(resources, name).get("used")) for name in resources},
        _count(status.get("pending")),
    )


def _milli(value: object) -> int:
    try:
        return int(parse_quantity(value) * _MILLI)
    except QuantityError:
        return 0


def _mib(value: object) -> int:
    try:
        return parse_mib(value)
    except QuantityError:
        return 0


def _count(value: object) -> int:
    return value if type(value) is int else 0
