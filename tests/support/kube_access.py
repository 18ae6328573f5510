# SPDX-License-Identifier: Apache-2.0
"""Access to a real control plane for our client, straight or through a breakable link."""

from dataclasses import replace

from reconciler.kube.access import Access, KubeconfigAccess
from tests.support.breakable_link import BreakableLink


class LinkedAccess:
    """A kubeconfig whose server is reached through a link."""

    def __init__(self, kubeconfig: str, link: BreakableLink) -> None:
        self._source = KubeconfigAccess(kubeconfig)
        self._link = link

    async def load(self, *, renew: bool = False) -> Access:
        access = await self._source.load(renew=renew)
        return replace(access, server=f"https://127.0.0.1:{self._link.port}")
