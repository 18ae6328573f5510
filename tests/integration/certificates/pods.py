# SPDX-License-Identifier: Apache-2.0
"""Pods that are only tried (dry run), and whether a webhook was asked about them."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from tests.controlplane import ControlPlane

BURST: Final = 50
"""More at once than the API server keeps idle connections, so that each opens new ones."""

Json = dict[str, Any]


def pod(name: str) -> Json:
    """Return a pod with a GPU."""
    container = {
        "name": "main",
        "image": "registry.test/image",
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def is_refused(control_plane: ControlPlane) -> bool:
    """Tell whether a pod with a GPU in a namespace of no tenant is refused by Sluice itself."""
    done = control_plane.kubectl(
        *("create", "--dry-run=server", "--filename=-", "--namespace=default"),
        stdin=pod("stranger"),
        check=False,
    )
    return "[NoTenant]" in done.stderr


class Load:
    """Tries 50 pods a second, so that there are 100 reviews; each must be admitted."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self.tried = 0
        self.failures: list[str] = []
        self.is_over = False
        # A machine that is busy otherwise would fall behind for ever.
        self._slots = asyncio.Semaphore(2 * BURST)

    async def run(self) -> None:
        """Send a burst every second until it is over, and wait for what is under way then."""
        loop = asyncio.get_running_loop()
        begun, bursts = loop.time(), 0
        async with asyncio.TaskGroup() as tasks:
            while not self.is_over:
                for number in range(BURST):
                    await self._slots.acquire()
                    tasks.create_task(self._try(f"load-{bursts}-{number}"))
                bursts += 1
                await asyncio.sleep(max(0.0, begun + bursts - loop.time()))

    async def _try(self, name: str) -> None:
        try:
            async with self._session.post(self._url, json=pod(name)) as response:
                text = await response.text()
                if response.status != HTTPStatus.CREATED:
                    self.failures.append(f"{response.status}: {text[:300]}")
        except (aiohttp.ClientError, TimeoutError) as error:
            self.failures.append(repr(error))
        finally:
            self.tried += 1
            self._slots.release()


@asynccontextmanager
async def loaded(control_plane: ControlPlane, namespace: str) -> AsyncIterator[Load]:
    """Try pods in a namespace during the block; those under way at its end are waited for."""
    tls = ssl.create_default_context(cadata=control_plane.ca_bundle.decode())
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {control_plane.token}"},
        connector=aiohttp.TCPConnector(ssl=tls, limit=0),
        timeout=aiohttp.ClientTimeout(total=30.0),
    ) as session:
        url = f"{control_plane.url}/api/v1/namespaces/{namespace}/pods?dryRun=All"
        load = Load(session, url)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.run())
            try:
                yield load
            finally:
                load.is_over = True
