# SPDX-License-Identifier: Apache-2.0
"""Webhook and reconciler apart: the one only serves what the other has made and has trusted."""

import asyncio
from typing import Final

import pytest

from reconciler.manifests.options import Processes
from tests.controlplane import ControlPlane
from tests.integration.certificates.conftest import Install
from tests.integration.certificates.installation import (
    AUTHORITY,
    NAMESPACE,
    SERVING,
    Front,
    Installation,
)
from tests.integration.certificates.pods import is_refused

pytestmark = pytest.mark.timeout(180)

_WEBHOOK: Final = "system:serviceaccount:sluice:sluice-webhook"


@pytest.fixture
def apart(install: Install) -> Installation:
    """Sluice installed with two accounts, and no process started."""
    return install(Processes.APART)


def may(control_plane: ControlPlane, verb: str, what: str) -> bool:
    question = ("auth", "can-i", verb, what, "-n", NAMESPACE, f"--as={_WEBHOOK}")
    return control_plane.kubectl(*question, check=False).stdout == "yes\n"


async def test_webhooks_wait_for_the_leaders_certificate_and_serve_it(apart: Installation) -> None:
    webhooks = ("one", "two")
    for name in webhooks:
        apart.start(name, "serve")
    ports = [apart.ports[name] for name in webhooks]
    apart.start("leader", "reconcile")
    async with Front(ports).opened(apart.front):
        await apart.wait_ready("leader", *webhooks)
        await apart.wait(lambda: is_refused(apart.control_plane))
    leaf = await asyncio.to_thread(apart.leaf)
    assert [apart.served(name) for name in webhooks] == [leaf, leaf]
    for name in (*webhooks, "leader"):
        assert "forbidden" not in apart.log_of(name).read_text(encoding="utf-8").lower()


def test_webhooks_never_see_the_authoritys_key_and_change_no_certificate(
    apart: Installation,
) -> None:
    control_plane = apart.control_plane
    assert may(control_plane, "watch", f"secret/{SERVING}")
    for verb in ("get", "list", "watch", "patch", "update", "delete"):
        assert not may(control_plane, verb, f"secret/{AUTHORITY}")
    for verb in ("patch", "update", "delete"):
        assert not may(control_plane, verb, f"secret/{SERVING}")
    assert not may(control_plane, "create", "secrets")
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert not may(control_plane, "patch", f"{kind}/sluice")
