# SPDX-License-Identifier: Apache-2.0
"""On the real control plane: what is being deleted counts until nobody can know of it any more."""

import asyncio
import secrets
from pathlib import Path

from reconciler.kube.client import Client
from reconciler.kube.resources import NODES, PODS, Target
from tests.controlplane import ControlPlane, nodes
from tests.integration.conftest import MakeNamespace
from tests.integration.reclaim.scene import REASON, Scene, annotation, documents, playing

_HOSTNAME = "kubernetes.io/hostname"
_UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


async def test_a_deleted_pod_counts_until_its_grace_is_over_and_its_node_is_lost(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    scene = Scene(client, make_namespace(), [make_namespace()], tmp_path / "audit.jsonl")
    far = f"far-{secrets.token_hex(4)}"
    await asyncio.to_thread(control_plane.create_nodes, [nodes.whole(far, count=2)])
    try:
        async with playing(control_plane, scene, documents(scene)):
            there = {"nodeSelector": {_HOSTNAME: far}, "terminationGracePeriodSeconds": 1}
            await scene.create(scene.owner, "left", gpus=2, spec=there)
            await scene.runs(scene.owner, "left")
            left = Target(PODS, "left", scene.owner)
            held = {"metadata": {"finalizers": ["example.test/held"]}}
            await client.patch_merge(left, held)
            await client.delete(left)
            await scene.create(scene.owner, "next", gpus=2)
            pods = await scene.until(
                scene.owner, lambda pods: annotation(pods["next"], REASON) is not None
            )
            assert "ceiling of 2 GPUs" in str(annotation(pods["next"], REASON))

            taints = {"spec": {"taints": [_UNREACHABLE]}}
            await client.patch_merge(Target(NODES, far), taints)
            pods = await scene.runs(scene.owner, "next")
            assert pods["left"]["status"]["phase"] == "Running"
            await client.patch_merge(left, {"metadata": {"finalizers": None}})
    finally:
        await client.delete(Target(NODES, far))
