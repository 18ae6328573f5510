# SPDX-License-Identifier: Apache-2.0
"""A fake API server and a client of it."""

from collections.abc import AsyncIterator

import pytest

from reconciler.kube.access import Access
from reconciler.kube.client import Client
from tests.support.fake_apiserver import FakeApiServer, run_fake


class FixedAccess:
    """Access that a test may exchange; counts how often it was read."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.loads: list[bool] = []

    async def load(self, *, renew: bool = False) -> Access:
        self.loads.append(renew)
        return self.access


@pytest.fixture
async def fake() -> AsyncIterator[FakeApiServer]:
    async with run_fake() as server:
        yield server


@pytest.fixture
async def client(fake: FakeApiServer) -> AsyncIterator[Client]:
    async with Client(FixedAccess(Access(fake.url))) as opened:
        yield opened
