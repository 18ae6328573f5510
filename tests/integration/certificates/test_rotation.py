# SPDX-License-Identifier: Apache-2.0
"""Authority and certificate are rotated while pods are created: none of them fails."""

import asyncio

import pytest
from cryptography import x509

from reconciler.manifests.access import accounts
from reconciler.manifests.options import Processes
from tests.integration.certificates.conftest import Install
from tests.integration.certificates.installation import AUTHORITY, Front, Installation
from tests.integration.certificates.pods import is_refused, loaded
from tests.integration.processes.api_log import ApiLog

pytestmark = pytest.mark.timeout(300)

WEBHOOKS = ("one", "two")
LEADERS = ("leader", "standby")


async def _rotate(installation: Installation) -> x509.Certificate:
    """Ask for a new authority; return the certificate that it signs, once it is served."""
    leaf = await asyncio.to_thread(installation.leaf)
    await asyncio.to_thread(installation.annotate, AUTHORITY, "sluice.dev/rotate=now")
    await installation.wait(
        lambda: installation.certificates(AUTHORITY, "coming.crt") != (), seconds=60
    )
    return leaf if leaf is not None else pytest.fail("nothing was served")


async def _served(installation: Installation, old: x509.Certificate) -> x509.Certificate:
    await installation.wait(lambda: installation.leaf() not in (None, old), 150)
    renewed = await asyncio.to_thread(installation.leaf)
    assert renewed is not None
    await installation.wait(lambda: all(installation.served(name) == renewed for name in WEBHOOKS))
    return renewed


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "leader-killed-in-the-middle"])
async def test_a_rotation_under_load_loses_no_review(
    install: Install, team: str, api_log: ApiLog, is_killed: bool
) -> None:
    installation = install(Processes.APART)
    for name in WEBHOOKS:
        installation.start(name, "serve")
    for name in LEADERS:
        installation.start(name, "reconcile")
    front = Front(installation.ports[name] for name in WEBHOOKS)
    async with front.opened(installation.front):
        await installation.wait_ready(*WEBHOOKS)
        await installation.wait(lambda: is_refused(installation.control_plane))
        (old,) = await asyncio.to_thread(installation.certificates, AUTHORITY, "ca.crt")

        async with loaded(installation.control_plane, team) as load:
            await installation.wait(lambda: load.tried > 100)
            leaf = await _rotate(installation)
            if is_killed:
                installation.kill(await asyncio.to_thread(lambda: installation.leader))
            renewed = await _served(installation, leaf)
            connections, tried = sum(front.accepted.values()), load.tried
            await installation.wait(lambda: load.tried > tried + 200)

    assert load.failures == []
    assert min(front.accepted.values()) > 0
    assert sum(front.accepted.values()) > connections, "nobody has met the new certificate"
    await asyncio.to_thread(_check_outcome, installation, old, renewed)
    _check_rights(installation, api_log)


def _check_outcome(
    installation: Installation, old: x509.Certificate, renewed: x509.Certificate
) -> None:
    (new,) = installation.certificates(AUTHORITY, "ca.crt")
    assert new != old
    renewed.verify_directly_issued_by(new)
    assert installation.is_trusted(new)
    assert installation.is_trusted(old), "a certificate of it has not ended"
    found = installation.secret(AUTHORITY)
    assert found is not None
    assert "coming.key" not in found["data"]
    assert "sluice.dev/rotate" not in found["metadata"].get("annotations", {})
    reasons = {reason for reason, _ in installation.events()}
    assert {"AuthorityPrepared", "AuthorityRotated", "CertificateRenewed"} <= reasons


def _check_rights(installation: Installation, api_log: ApiLog) -> None:
    """See that nothing was forbidden, and that every right for certificates was of use."""
    for account in accounts(installation.options):
        assert api_log.forbidden(account.name) == set()
        used = api_log.used(account.name)
        granted = {
            (group, resource, verb)
            for rule in (*account.cluster_rules, *account.own_rules)
            for group in _names(rule["apiGroups"])
            for resource in _names(rule["resources"])
            for verb in _names(rule["verbs"])
            if resource == "secrets" or group == "admissionregistration.k8s.io"
        }
        assert granted
        assert granted <= used


def _names(value: object) -> list[str]:
    assert isinstance(value, list)
    return value
