# SPDX-License-Identifier: Apache-2.0
"""An exporter behind what kube-rbac-proxy does: the API server judges Sluice's own token.

A TokenReview tells whose a token is and for whom, a SubjectAccessReview whether that account may
`get` the path. Source: brancz/kube-rbac-proxy, --auth-token-audiences, non-resource-url example.
"""

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import pytest

from reconciler.manifests.render import render_groups
from reconciler.manifests.telemetry import TelemetryOptions
from reconciler.telemetry.access import HttpAccess
from reconciler.telemetry.endpoints import Endpoint
from reconciler.telemetry.http import Http, HttpLimits
from reconciler.telemetry.scrape import Scrape, ScrapeSettings
from reconciler.telemetry.source import SourceError
from tests.controlplane import ControlPlane
from tests.controlplane.dcgm import Card, DcgmExporter, Guard
from tests.integration.manifests.installation import Installation, until
from tests.support.certificates import make_pki
from tests.support.telemetry import Taken

_AUDIENCE: Final = "exporters"
_TELEMETRY: Final = TelemetryOptions(
    {"SLUICE_TELEMETRY_SOURCE": "Scrape", "SLUICE_EXPORTER_SCHEME": "https"},
    exporter_audience=_AUDIENCE,
)


class _Proxy:
    """Judges as kube-rbac-proxy does."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane

    def judge(self, authorization: str) -> int:
        token = authorization.removeprefix("Bearer ")
        told = self._review(
            "authentication.k8s.io/v1", "TokenReview", {"token": token, "audiences": [_AUDIENCE]}
        )
        if not told.get("authenticated"):
            return HTTPStatus.UNAUTHORIZED
        spec = {
            "user": told["user"]["username"],
            "groups": told["user"]["groups"],
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
        allowed = self._review("authorization.k8s.io/v1", "SubjectAccessReview", spec)["allowed"]
        return HTTPStatus.OK if allowed else HTTPStatus.FORBIDDEN

    def _review(self, version: str, kind: str, spec: object) -> dict[str, Any]:
        body = {"apiVersion": version, "kind": kind, "spec": spec}
        answer = self._control_plane.kubectl("create", "--output=json", "--filename=-", stdin=body)
        found: dict[str, Any] = json.loads(answer.stdout)["status"]
        return found


async def test_the_token_that_is_mounted_reads_exporters_and_no_other_does(
    installation: Installation, tmp_path: Path
) -> None:
    options = installation.options(telemetry=_TELEMETRY)
    groups = render_groups(options)
    installation.apply([*groups["namespace"], *groups["access"]])
    pki, proxy = make_pki(tmp_path / "pki"), _Proxy(installation.control_plane)
    file = tmp_path / "token"
    access = HttpAccess(token_file=str(file), ca_file=str(pki.ca))

    def token(account: str, *flags: str) -> str:
        arguments = ("create", "token", account, "-n", options.namespace, *flags)
        return installation.control_plane.kubectl(*arguments).stdout.strip()

    right = token(options.name, f"--audience={_AUDIENCE}")
    until(
        lambda: proxy.judge(f"Bearer {right}") == HTTPStatus.OK,
        "the binding is known to the authorizer",
    )
    guard = Guard(pki.server_context(), judge=proxy.judge)
    limits = HttpLimits()
    with DcgmExporter("node-a", [Card("GPU-0", busy=0.5)], guard=guard) as exporter:
        endpoint = Endpoint("node-a", f"https://{exporter.address}/metrics")
        async with Http(access, limits) as http:
            source = Scrape([endpoint], http, ScrapeSettings(limits=limits))
            # What pods have anyway is for the API server, and no exporter may be shown it.
            file.write_text(token(options.name), encoding="utf-8")
            with pytest.raises(SourceError, match="status 401"):
                await source.read({"node-a"}, Taken())
            file.write_text(token("default", f"--audience={_AUDIENCE}"), encoding="utf-8")
            with pytest.raises(SourceError, match="status 403"):
                await source.read({"node-a"}, Taken())
            file.write_text(right, encoding="utf-8")
            taken = Taken()
            await source.read({"node-a"}, taken)
    assert {sample.subject.uuid for sample in taken.samples} == {"GPU-0"}
