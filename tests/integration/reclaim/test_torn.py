# SPDX-License-Identifier: Apache-2.0
"""A torn gang on the real control plane: what runs of it is told, and then evicted."""

from datetime import datetime
from pathlib import Path
from typing import Any, Final

from policies.quota.notice import read_notice
from reconciler.kube.client import Client
from reconciler.kube.resources import NODES, PODS, Resource, Target
from tests.controlplane import ControlPlane
from tests.integration.conftest import MakeNamespace
from tests.integration.reclaim.scene import GATE, GPU, NOTICE, Scene, annotation, reclaiming

_SETTINGS: Final = """
---
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {name: cluster}
spec: {queue: {gangTimeout: 10s}}
"""
_SETS: Final = Resource("apps", "v1", "replicasets")


def _pair(node: str) -> dict[str, Any]:
    """Return two pods of a gang, whose controller makes them again."""
    container = {
        "name": "main",
        "image": "registry.test/image",
        "resources": {"limits": {GPU: "1"}},
    }
    labels = {"sluice.dev/gang": "pair"}
    template = {
        "metadata": {
            "labels": labels,
            "annotations": {"sluice.dev/gang-size": "2"},
        },
        "spec": {
            "containers": [container],
            "schedulingGates": [{"name": GATE}],
            "tolerations": [{"operator": "Exists"}],
            "nodeSelector": {"kubernetes.io/hostname": node},
        },
    }
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "pair"}, "spec": spec}


async def _shrink(client: Client, scene: Scene) -> None:
    """Leave the node one GPU, as where a device has failed."""
    patch = {"status": {"allocatable": {GPU: "1"}, "capacity": {GPU: "1"}}}
    await client.patch_merge(Target(NODES, scene.node, subresource="status"), patch)


async def test_what_runs_of_a_torn_gang_is_told_by_which_rule_and_then_evicted(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(control_plane, client, make_namespace, tmp_path, more=_SETTINGS) as scene:
        await client.create(Target(_SETS, namespace=scene.owner), _pair(scene.node))
        pods = await scene.until(
            scene.owner,
            lambda pods: [p["status"].get("phase") for p in pods.values()] == ["Running"] * 2,
        )
        await _shrink(client, scene)
        lost, kept = pods
        await client.delete(Target(PODS, lost, scene.owner), grace_seconds=0)

        pods = await scene.until(
            scene.owner, lambda pods: kept in pods and bool(annotation(pods[kept], NOTICE))
        )
        notice = read_notice(annotation(pods[kept], NOTICE))
        assert notice is not None
        assert (notice.beneficiary, notice.rule) == (f"{scene.owner}/pair", "gangTimeout")
        assert notice.evict_at == notice.at + 2

        await scene.until(scene.owner, lambda pods: kept not in pods)
        told, *_ = await scene.audited(action="Forewarn", outcome="Done", name=kept)
        ended, *_ = await scene.audited(action="GiveUp", outcome="Done", name=kept)
        times = (datetime.fromisoformat(text) for text in (told["evictAt"], ended["time"]))
        assert next(times) <= next(times)
        assert "1 of gang pair run, and the rest waits: " in ended["because"]
