# SPDX-License-Identifier: Apache-2.0
"""What tenants use, watched in the status of their custom resources.

Where these are not served, nothing is known. Whoever writes them is not known here.
"""

from collections.abc import Mapping
from typing import Final

from policies.documents.kinds import Kind
from policies.documents.usage import tenant_usage
from policies.model.usage import TenantUsage
from reconciler.kube.document_resources import resource_of
from reconciler.kube.served import ServedSettings, ServedWatch, Server

_SETTINGS: Final = ServedSettings()

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
