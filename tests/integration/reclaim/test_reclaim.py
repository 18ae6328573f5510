# SPDX-License-Identifier: Apache-2.0
"""Reclaim on the real control plane: notices, Evictions, disruption budgets, who gets the room."""

import asyncio
import subprocess
import sys
from pathlib import Path

from policies.quota.notice import read_notice, rfc3339
from reconciler.kube.client import Client
from reconciler.kube.resources import POD_DISRUPTION_BUDGETS, PODS, Target
from tests.controlplane import ControlPlane
from tests.controlplane.replica import ROOT
from tests.integration.conftest import MakeNamespace
from tests.integration.reclaim.scene import (
    LONG,
    NOTICE,
    Scene,
    annotation,
    documents,
    playing,
    reclaiming,
)


async def test_a_guarantee_comes_back_after_a_notice_and_everyone_can_read_why(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(control_plane, client, make_namespace, tmp_path) as scene:
        for name in ("b0", "b1"):
            await scene.create(scene.borrower, name)
        await scene.runs(scene.borrower, "b0", "b1")
        await scene.create(scene.owner, "w")
        pods = await scene.until(
            scene.borrower,
            lambda pods: any(annotation(p, "state.sluice.dev/notice") for p in pods.values()),
        )
        (told,) = [n for n, p in pods.items() if annotation(p, "state.sluice.dev/notice")]
        notice = read_notice(annotation(pods[told], "state.sluice.dev/notice"))
        assert notice is not None
        assert (notice.beneficiary, notice.rule) == (f"{scene.owner}/w", "ReclaimPolicy/quick")
        assert notice.evict_at == notice.at + 2
        async with asyncio.timeout(LONG):
            shown = ""
            while "ReclaimNotice" not in shown:
                answer = await control_plane.kubectl_async(
                    "describe", "pod", told, "--namespace", scene.borrower
                )
                shown = answer.stdout
        assert f"for {scene.owner}/w of tenant {scene.owner}" in shown
        await scene.until(scene.borrower, lambda pods: told not in pods)
        await scene.runs(scene.owner, "w")
        left = await scene.look(scene.borrower)
        assert len(left) == 1
        assert not any(annotation(p, "state.sluice.dev/notice") for p in left.values())
        line, *_ = await scene.audited(action="Evict", outcome="Done", name=told)
        assert line["beneficiary"]["name"] == f"{scene.owner}/w"
        assert line["giver"]["beforeMilli"] == 2000
        assert line["giver"]["afterMilli"] == 1000
        assert line["noticedAt"] is not None


async def test_another_pod_goes_where_a_budget_allows_none(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(control_plane, client, make_namespace, tmp_path) as scene:
        await scene.create(scene.borrower, "old")
        await scene.runs(scene.borrower, "old")
        # The younger one would go first.
        await scene.create(scene.borrower, "kept", labels={"app": "kept"})
        await scene.runs(scene.borrower, "kept")
        await scene.protect(scene.borrower, "kept", minAvailable=1)
        await scene.create(scene.owner, "w")
        await scene.runs(scene.owner, "w")
        assert set(await scene.look(scene.borrower)) == {"kept"}


async def test_a_pod_that_a_budget_never_lets_go_is_deleted_in_the_end(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(
        control_plane, client, make_namespace, tmp_path, pdb_timeout="5s"
    ) as scene:
        for name in ("b0", "b1"):
            await scene.create(scene.borrower, name, labels={"app": "web"})
        await scene.runs(scene.borrower, "b0", "b1")
        await scene.protect(scene.borrower, "web", maxUnavailable=0)
        await scene.create(scene.owner, "w")
        refused, *_ = await scene.audited(action="Evict", outcome="Refused")
        assert "disruption budget" in refused["message"]
        await scene.runs(scene.owner, "w")
        line, *_ = await scene.audited(action="Delete", outcome="Done")
        assert line["name"] == refused["name"]
        assert line["refusedSince"] is not None
        assert len(await scene.look(scene.borrower)) == 1


async def test_several_budgets_on_one_pod_are_refusals_like_any(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(
        control_plane, client, make_namespace, tmp_path, pdb_timeout="5s"
    ) as scene:
        await scene.create(scene.borrower, "b", gpus=2, labels={"app": "web"})
        await scene.runs(scene.borrower, "b")
        await scene.protect(scene.borrower, "web", minAvailable=0)
        body = {
            "metadata": {"name": "too"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 0},
        }
        await client.create(Target(POD_DISRUPTION_BUDGETS, namespace=scene.borrower), body)
        await scene.create(scene.owner, "w")
        refused, *_ = await scene.audited(action="Evict", outcome="Refused")
        assert "more than one PodDisruptionBudget" in refused["message"]
        await scene.runs(scene.owner, "w")


async def test_a_victim_may_take_its_grace_and_nobody_else_goes_meanwhile(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    slow = {"pod-delete.stage.kwok.x-k8s.io/delay": "4s"}
    async with reclaiming(control_plane, client, make_namespace, tmp_path) as scene:
        for name in ("b0", "b1"):
            await scene.create(scene.borrower, name, annotations=slow)
        await scene.runs(scene.borrower, "b0", "b1")
        await scene.create(scene.owner, "w")
        await scene.audited(action="Evict", outcome="Done")
        await scene.runs(scene.owner, "w")
        assert len(await scene.look(scene.borrower)) == 1
        assert scene.audit_text().count('"action":"Evict"') == 1


async def test_a_notice_is_taken_off_when_the_beneficiary_goes(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(control_plane, client, make_namespace, tmp_path) as scene:
        for name in ("b0", "b1"):
            await scene.create(scene.borrower, name)
        await scene.runs(scene.borrower, "b0", "b1")
        await scene.create(scene.owner, "w")
        await scene.audited(action="Notify", outcome="Done")
        await client.delete(Target(PODS, "w", scene.owner))
        await scene.audited(action="Withdraw", outcome="Done")
        pods = await scene.look(scene.borrower)
        assert set(pods) == {"b0", "b1"}
        assert not any(annotation(p, "state.sluice.dev/notice") for p in pods.values())


async def test_whoever_waits_reads_whom_reclaim_takes_for_it_and_when(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    scene = Scene(client, make_namespace(), [make_namespace()], tmp_path / "audit.jsonl")
    text = documents(scene, notice="10m")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "all.yaml").write_text(text, encoding="utf-8")
    async with playing(control_plane, scene, text):
        await scene.create(scene.borrower, "big", gpus=2)
        await scene.runs(scene.borrower, "big")
        await scene.create(scene.owner, "w")
        pods = await scene.until(
            scene.borrower, lambda pods: annotation(pods["big"], NOTICE) is not None
        )
        notice = read_notice(annotation(pods["big"], NOTICE))
        assert notice is not None
        arguments = ("explain", "pod", f"{scene.owner}/w", "--policies", str(tmp_path / "policies"))
        kubeconfig = ("--kubeconfig", str(control_plane.kubeconfig))
        argv = (sys.executable, str(ROOT / "sluice.py"), *arguments, *kubeconfig)
        done = await asyncio.to_thread(
            subprocess.run, argv, capture_output=True, text=True, check=False
        )

    assert done.returncode == 0, done.stderr
    who = f"{scene.borrower}/big of {scene.borrower} (2 GPUs, at {rfc3339(notice.evict_at)})"
    (line,) = [line for line in done.stdout.splitlines() if "takes back" in line]
    assert line.split(":", 1)[1].strip() == who
