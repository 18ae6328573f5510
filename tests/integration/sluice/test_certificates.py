# SPDX-License-Identifier: Apache-2.0
"""The certificate is renewed while pods are created: none of them fails."""

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path

from certs.files import ensure
from certs.names import LOOPBACK
from tests.controlplane import ControlPlane
from tests.controlplane.ports import HOST
from tests.integration.sluice.api import Api, Created, connected
from tests.integration.sluice.objects import HOLD, Json, pod
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team
from tests.support import waiting

_FEW, _MANY = 2, 24
_SECONDS = 30.0


def _held(name: str) -> Json:
    return pod(name=name, schedulingGates=[{"name": HOLD}])


def _is_served(certificate: Path, port: int) -> bool:
    """Tell whether a new connection is given this certificate."""
    served = ssl.get_server_certificate((HOST, port))
    return ssl.PEM_cert_to_DER_cert(served) == ssl.PEM_cert_to_DER_cert(certificate.read_text())


async def _burst(api: Api, namespace: str, prefix: str) -> list[Created]:
    """Create so many at once that the API server has to open new connections."""
    creating = (api.create(namespace, _held(f"{prefix}-{number}")) for number in range(_MANY))
    return await asyncio.gather(*creating)


async def test_a_renewal_is_taken_up_without_a_failed_create(
    sluice: Running, control_plane: ControlPlane, team_a: Team
) -> None:
    reloads = sluice.metric("sluice_tls_reloads_total", result="Success")
    answers: list[Created] = []
    async with (
        connected(control_plane) as api,
        api.creating(team_a.namespace, _held, answers, _FEW),
    ):
        names = (*LOOPBACK, "renewed.example.test")
        renewed = ensure(sluice.installed.certificates, names, datetime.now(UTC))
        assert renewed.certificate in renewed.written
        assert renewed.ca_certificate not in renewed.written
        port = sluice.installed.port
        await waiting.until(lambda: _is_served(renewed.certificate, port), _SECONDS)
        answers += await _burst(api, team_a.namespace, "after")
        enough = len(answers) + _MANY
        await waiting.until(lambda: len(answers) >= enough, _SECONDS)

    assert [answer.message for answer in answers if not answer.ok] == []
    assert sluice.metric("sluice_tls_reloads_total", result="Success") == reloads + 1
