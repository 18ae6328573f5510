# SPDX-License-Identifier: Apache-2.0
"""From nothing to a webhook that the API server calls, without anybody making a certificate."""

import asyncio

from tests.integration.certificates.installation import Front, Installation
from tests.integration.certificates.pods import is_refused


async def test_an_installation_without_certificates_comes_up_by_itself(
    installation: Installation,
) -> None:
    installation.start("one", "run")
    installation.start("two", "run")
    async with Front(installation.ports.values()).opened(installation.front):
        await installation.wait_ready("one", "two")
        await installation.wait(lambda: is_refused(installation.control_plane))

    leaf = await asyncio.to_thread(installation.leaf)
    assert installation.served("one") == installation.served("two") == leaf
