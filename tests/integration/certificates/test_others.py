# SPDX-License-Identifier: Apache-2.0
"""Certificates of others are served and never written; those of files can be handed over."""

import asyncio
import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs.files import CertificateFiles, ensure, read_ca_bundle
from certs.names import LOOPBACK
from reconciler.manifests.options import Processes
from tests.integration.certificates.conftest import Install
from tests.integration.certificates.installation import (
    AUTHORITY,
    KINDS,
    NAMESPACE,
    SERVING,
    Front,
    Installation,
)
from tests.integration.certificates.pods import is_refused, loaded

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    """Certificates that somebody else has made."""
    return ensure(tmp_path / "others", LOOPBACK, datetime.now(UTC))


def _apply_secret(
    installation: Installation, files: CertificateFiles, annotations: Mapping[str, str]
) -> None:
    data = {
        "ca.crt": files.ca_certificate.read_bytes(),
        "tls.crt": files.certificate.read_bytes(),
        "tls.key": files.key.read_bytes(),
    }
    metadata = {"name": SERVING, "namespace": NAMESPACE, "annotations": dict(annotations)}
    installation.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": metadata,
                "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
            }
        ]
    )


def _objects(installation: Installation) -> list[Any]:
    """Return all that a leader could have written, with versions and managers."""
    get = installation.control_plane.get
    secrets = get("secrets", "-n", NAMESPACE, "--show-managed-fields")["items"]
    return [*secrets, *(get(kind, "sluice", "--show-managed-fields") for kind in KINDS)]


async def test_what_cert_manager_manages_is_served_and_never_written(
    install: Install, files: CertificateFiles
) -> None:
    installation = install(Processes.APART)
    bundle = read_ca_bundle(files.ca_certificate)
    annotations = {"cert-manager.io/certificate-name": "sluice"}
    await asyncio.to_thread(_apply_secret, installation, files, annotations)
    await asyncio.to_thread(installation.apply_webhooks, bundle)
    for kind in KINDS:
        installation.control_plane.kubectl(
            "annotate", kind, "sluice", "cert-manager.io/inject-ca-from=sluice/sluice"
        )
    before = await asyncio.to_thread(_objects, installation)

    installation.start("webhook", "serve")
    installation.start("leader", "reconcile")
    async with Front([installation.ports["webhook"]]).opened(installation.front):
        await installation.wait_ready("webhook", "leader")
        await installation.wait(lambda: is_refused(installation.control_plane))
        refused = {("ManagedByOthers", SERVING), ("ManagedByOthers", "sluice")}
        await installation.wait(lambda: refused <= set(installation.events()))

        assert await asyncio.to_thread(_objects, installation) == before
        assert installation.served("webhook") == await asyncio.to_thread(installation.leaf)


async def test_certificates_of_files_are_handed_over_without_a_failed_review(
    install: Install, files: CertificateFiles, team: str
) -> None:
    installation = install(Processes.APART)
    bundle = read_ca_bundle(files.ca_certificate)
    await asyncio.to_thread(_apply_secret, installation, files, {})
    await asyncio.to_thread(installation.apply_webhooks, bundle)
    installation.start("webhook", "serve")
    installation.start("leader", "reconcile")
    async with Front([installation.ports["webhook"]]).opened(installation.front):
        await installation.wait_ready("webhook", "leader")
        await installation.wait(lambda: is_refused(installation.control_plane))
        theirs = await asyncio.to_thread(installation.leaf)
        assert await asyncio.to_thread(installation.secret, AUTHORITY) is None

        async with loaded(installation.control_plane, team) as load:
            await installation.wait(lambda: load.tried > 50)
            installation.control_plane.kubectl(
                *("label", "secret", SERVING, "-n", NAMESPACE, "sluice.dev/certificates=leader")
            )
            await installation.wait(lambda: installation.leaf() != theirs, 120)
            await asyncio.to_thread(installation.apply_webhooks)
            tried = load.tried
            await installation.wait(lambda: load.tried > tried + 100)

    assert load.failures == []
    assert all(len(trusted) == 2 for trusted in await asyncio.to_thread(installation.bundles))


async def test_bundles_and_secrets_that_are_taken_away_come_back(install: Install) -> None:
    installation = install(Processes.TOGETHER)
    installation.start("one", "run")
    async with Front([installation.ports["one"]]).opened(installation.front):
        await installation.wait_ready("one")
        await installation.wait(lambda: is_refused(installation.control_plane))
        (own,) = await asyncio.to_thread(installation.certificates, AUTHORITY, "ca.crt")
        leaf = await asyncio.to_thread(installation.leaf)

        for kind in KINDS:
            installation.control_plane.kubectl("delete", kind, "sluice")
        await asyncio.to_thread(installation.apply_webhooks)
        await installation.wait(lambda: installation.is_trusted(own))
        installation.control_plane.kubectl("delete", "secret", SERVING, "-n", NAMESPACE)
        await installation.wait(lambda: installation.leaf() not in (None, leaf))
        renewed = await asyncio.to_thread(installation.leaf)
        await installation.wait(lambda: installation.served("one") == renewed)
        assert await asyncio.to_thread(is_refused, installation.control_plane)
        assert (own,) == await asyncio.to_thread(installation.certificates, AUTHORITY, "ca.crt")
