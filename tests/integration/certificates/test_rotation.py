# SPDX-License-Identifier: Apache-2.0
"""Authority and certificate are rotated while pods are created: none of them fails."""

import asyncio

import pytest

from tests.integration.certificates.installation import (
    AUTHORITY,
    NAMESPACE,
    SERVING,
    Front,
    Installation,
)
from tests.integration.certificates.pods import is_refused, loaded
from tests.integration.conftest import MakeNamespace

WEBHOOKS = ("one", "two")


@pytest.mark.timeout(240)
async def test_a_rotation_under_load_loses_no_review(
    installation: Installation, make_namespace: MakeNamespace
) -> None:
    namespace = make_namespace({"tenant": "team-a"})
    for name in WEBHOOKS:
        installation.start(name, "serve")
    installation.start("leader", "reconcile")
    front = Front(installation.ports[name] for name in WEBHOOKS)
    async with front.opened(installation.front):
        await installation.wait_ready(*WEBHOOKS)
        await installation.wait(lambda: is_refused(installation.control_plane))
        (old,) = await asyncio.to_thread(installation.certificates, AUTHORITY, "ca.crt")
        leaf = await asyncio.to_thread(installation.leaf)

        async with loaded(installation.control_plane, namespace) as load:
            await installation.wait(lambda: load.tried > 100)
            await asyncio.to_thread(installation.annotate, AUTHORITY, "sluice.dev/rotate=now")
            await installation.wait(lambda: installation.leaf() not in (None, leaf), 120)
            renewed = await asyncio.to_thread(installation.leaf)
            await installation.wait(
                lambda: all(installation.served(name) == renewed for name in WEBHOOKS)
            )
            connections = sum(front.accepted.values())
            tried = load.tried
            await installation.wait(lambda: load.tried > tried + 200)

    assert load.failures == []
    assert min(front.accepted.values()) > 0
    assert sum(front.accepted.values()) > connections, "nobody has met the new certificate"
    (new,) = await asyncio.to_thread(installation.certificates, AUTHORITY, "ca.crt")
    assert renewed is not None
    assert new != old
    renewed.verify_directly_issued_by(new)
    assert await asyncio.to_thread(installation.is_trusted, new)
    assert await asyncio.to_thread(installation.is_trusted, old), "a leaf of it has not ended"
    found = await asyncio.to_thread(installation.secret, AUTHORITY)
    assert found is not None
    assert "sluice.dev/rotate" not in found["metadata"].get("annotations", {})
    reasons = {reason for reason, name in await asyncio.to_thread(installation.events)}
    assert {"AuthorityPrepared", "AuthorityRotated", "CertificateRenewed"} <= reasons
    assert (await asyncio.to_thread(installation.secret, SERVING) or {})["type"] == (
        "kubernetes.io/tls"
    )
    assert found["metadata"]["namespace"] == NAMESPACE
