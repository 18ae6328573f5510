# SPDX-License-Identifier: Apache-2.0
"""A webhook of others that hangs on one namespace's pods, on the real control plane."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from reconciler.kube.client import Client
from reconciler.kube.resources import Resource, Target
from tests.controlplane import ControlPlane
from tests.integration.conftest import MakeNamespace
from tests.integration.quota.test_controller import create, is_released, look, until_pods
from tests.support.candidates import candidates

_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
)
_RELEASED: Final = (
    "object.spec.?schedulingGates.orValue([]).size()"
    " < oldObject.spec.?schedulingGates.orValue([]).size()"
)
_MANY: Final = 60
_HANGS_SECONDS: Final = 6


@asynccontextmanager
async def hanging(client: Client, namespace: str) -> AsyncIterator[None]:
    """Register a webhook on releases of a namespace's pods that takes calls and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["UPDATE"],
            "resources": ["pods"],
        }
        webhook = {
            "name": "hanging.example.test",
            "clientConfig": {"url": f"https://127.0.0.1:{listener.getsockname()[1]}/"},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "matchConditions": [{"name": "released", "expression": _RELEASED}],
            "sideEffects": "None",
            "timeoutSeconds": _HANGS_SECONDS,
            "admissionReviewVersions": ["v1"],
        }
        body = {"metadata": {"name": namespace}, "webhooks": [webhook]}
        await client.create(Target(_WEBHOOKS), body)
        try:
            yield
        finally:
            await client.delete(Target(_WEBHOOKS, namespace))


@pytest.mark.timeout(120)
async def test_pods_of_other_namespaces_are_released_meanwhile(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    stuck, other = make_namespace(), make_namespace()
    async with hanging(client, stuck), candidates(control_plane, tmp_path) as standing:
        for number in range(_MANY):
            await create(client, stuck, f"stuck-{number:02}", gpus=0)
        standing.allow(stuck, 100, other)
        await standing.stand()
        await until_pods(
            client,
            stuck,
            lambda pods: any(
                p["metadata"]
                .get("annotations", {})
                .get("state.sluice.dev/reason", "")
                .startswith("Refused: ")
                for p in pods.values()
            ),
        )
        for number in range(_MANY):
            await create(client, other, f"free-{number:02}", gpus=0)
        await until_pods(client, other, lambda pods: all(map(is_released, pods.values())))
        assert not any(map(is_released, (await look(client, stuck)).values()))
