# SPDX-License-Identifier: Apache-2.0
"""From nothing, or from what has ended, to a webhook that the API server calls."""

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from certs.issue import issue_leaf
from certs.keyring import Lifetimes, begin
from certs.keyring_pem import encode_keyring
from certs.names import service_names
from certs.pem import certificates_pem, key_pem
from reconciler.manifests.options import Processes
from tests.integration.certificates.conftest import Install
from tests.integration.certificates.installation import (
    AUTHORITY,
    NAMESPACE,
    SERVING,
    Front,
    Installation,
)
from tests.integration.certificates.pods import is_refused, pod

pytestmark = pytest.mark.timeout(180)


async def test_an_installation_without_certificates_comes_up_by_itself(install: Install) -> None:
    installation = install(Processes.TOGETHER)
    installation.start("one", "run")
    installation.start("two", "run")
    async with Front(installation.ports.values()).opened(installation.front):
        await installation.wait_ready("one", "two")
        await installation.wait(lambda: is_refused(installation.control_plane))

        leaf = await asyncio.to_thread(installation.leaf)
        assert installation.served("one") == installation.served("two") == leaf


async def test_a_leader_that_comes_back_after_a_year_needs_no_webhook_to_mend_it(
    install: Install, team: str
) -> None:
    """Its picture is whole only once a pod was written to, which the dead webhook refuses."""
    installation = install(Processes.TOGETHER)
    installation.start("one", "run")
    async with Front([installation.ports["one"]]).opened(installation.front):
        await installation.wait_ready("one")
        await installation.wait(lambda: is_refused(installation.control_plane))
        await asyncio.to_thread(_create_held, installation, team)
    installation.stop("one")
    await asyncio.to_thread(_expire, installation)
    await asyncio.to_thread(_lose_intents, installation)

    installation.start("later", "run")
    async with Front([installation.ports["later"]]).opened(installation.front):
        await installation.wait_ready("later")
        await installation.wait(lambda: is_refused(installation.control_plane))
        await installation.wait(lambda: _is_voided(installation, team))


def _create_held(installation: Installation, namespace: str) -> None:
    held = pod("held")
    held["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "nowhere"}
    installation.control_plane.kubectl("create", "--filename=-", "-n", namespace, stdin=held)


def _expire(installation: Installation) -> None:
    """Put certificates of two years ago into the Secrets, and have them trusted."""
    then = datetime.now(UTC) - timedelta(days=730)
    keyring = begin(then, Lifetimes())
    leaf = issue_leaf(keyring.current, service_names("sluice", NAMESPACE), then)
    bundle = certificates_pem(keyring.trusted)
    _write(installation, AUTHORITY, encode_keyring(keyring))
    certificate = certificates_pem((leaf.certificate,))
    _write(
        installation,
        SERVING,
        {"ca.crt": bundle, "tls.crt": certificate, "tls.key": key_pem(leaf.key)},
    )
    installation.apply_webhooks(bundle)


def _write(installation: Installation, name: str, data: dict[str, bytes]) -> None:
    body = {"data": {key: base64.b64encode(value).decode() for key, value in data.items()}}
    installation.control_plane.kubectl(
        *("patch", "secret", name, "-n", NAMESPACE, "--type=merge", "-p", json.dumps(body))
    )


def _lose_intents(installation: Installation) -> None:
    """Leave what the past leader had declared unreadable, so that every pod is to be written to."""
    installation.control_plane.kubectl(
        *("annotate", "lease", "sluice", "-n", NAMESPACE, "--overwrite"),
        "state.sluice.dev/intents=nonsense",
    )


def _is_voided(installation: Installation, namespace: str) -> bool:
    found: Any = installation.control_plane.get("pod", "held", "-n", namespace)
    return "state.sluice.dev/voided" in found["metadata"].get("annotations", {})
