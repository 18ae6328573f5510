# SPDX-License-Identifier: Apache-2.0
"""What tenants' conditions and metrics tell of what is not as it should be, on a real cluster."""

from pathlib import Path

from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.integration.quota.conftest import (
    DOCUMENTS,
    LENDER,
    NAME,
    command,
    gpus,
    is_released,
    says,
    status,
)
from tests.integration.sluice.objects import Json
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, until


async def test_a_lowered_ceiling_is_told_and_evicts_nobody(
    sluice: InstalledSluice, team: Team, rest: Rest, policies: Path
) -> None:
    team.create(gpus(3, "all"))
    says(rest, used="3")
    file = policies / "all.yaml"
    file.write_text(DOCUMENTS.replace("ceiling: 3", "ceiling: 2"), encoding="utf-8")
    try:
        found = says(rest, ceiling="2")
        (over,) = (c for c in found["conditions"] if c["type"] == "OverQuota")
        assert over["status"] == "True"
        assert "OverQuota: uses 3 GPUs" in command(sluice, "tenants").stdout
        assert is_released(team.pod("all"))
        assert "deletionTimestamp" not in team.pod("all")["metadata"]
    finally:
        file.write_text(DOCUMENTS, encoding="utf-8")
        says(rest, ceiling="3")


async def test_guarantees_beyond_what_nodes_have_are_a_condition_and_a_metric(
    sluice: InstalledSluice, team: Team, rest: Rest, policies: Path
) -> None:
    metric = Running(sluice, Path()).metric
    file = policies / "all.yaml"
    promised = DOCUMENTS.replace("guarantee: 2", "guarantee: 2000")
    file.write_text(promised, encoding="utf-8")
    try:
        says(rest, tenant=LENDER, guarantee="2000")
        (short,) = until(lambda: _true(rest, LENDER, "Overcommitted"), "the condition")
        assert short["reason"] == "MoreThanNodesHave"
        assert "2001 GPUs are guaranteed to tenants, and the nodes have " in short["message"]
        until(lambda: metric("sluice_overcommitted_gpus", pool="") > 1900, "the metric")
    finally:
        file.write_text(DOCUMENTS, encoding="utf-8")
        says(rest, tenant=LENDER, guarantee="2")
    until(lambda: not _true(rest, LENDER, "Overcommitted"), "the end of the condition")


async def test_a_tenant_that_is_taken_out_goes_on_counting_what_runs(
    sluice: InstalledSluice, team: Team, rest: Rest, policies: Path
) -> None:
    name, file = "leaving", policies / "leaving.yaml"
    file.write_text(_LEAVING, encoding="utf-8")
    says(rest, tenant=name, used="0")
    team.create(gpus(1, "first"))
    says(rest, used="1")
    team.kubectl("label", "namespace", team.namespace, f"tenant={name}", "--overwrite")
    says(rest, tenant=name, used="1")
    # What is charged to the tenant that goes must have been released by it.
    team.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    says(rest, tenant=name, used="0")
    team.create(gpus(1, "worker"))
    says(rest, tenant=name, used="1")

    file.unlink()

    accepted = until(lambda: _false(rest, name, "Accepted"), "the object telling of it")
    assert [each["reason"] for each in accepted] == ["DocumentGone"]
    assert says(rest, tenant=name)["used"] == "1"
    assert is_released(team.pod("worker"))
    team.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    until(lambda: not status(rest, name), "the end of its object")


async def test_a_static_pod_that_no_gate_can_hold_is_counted_and_told(
    sluice: InstalledSluice, team: Team, rest: Rest, control_plane: ControlPlane
) -> None:
    says(rest, used="0")
    kubelet, node = "system:node:h100-whole", "h100-whole"
    control_plane.add_user(kubelet, ("system:nodes",))
    binding = ("rolebinding", "kubelet", "--clusterrole=admin", f"--user={kubelet}")
    assert team.kubectl("create", *binding).ok
    mirror = gpus(1, "static")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    mirror["spec"]["nodeName"] = node

    answer = team.kubectl("create", "--filename=-", stdin=mirror, user=kubelet)

    assert answer.ok, answer.error
    says(rest, used="1")
    (odd,) = until(lambda: _true(rest, NAME, "OddPods"), "the condition")
    assert odd["reason"] == "SkippedGate"
    metric = Running(sluice, Path()).metric
    until(lambda: metric("sluice_odd_pods", kind="SkippedGate") >= 1, "the metric")
    team.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    until(lambda: not _true(rest, NAME, "OddPods"), "the end of the condition")


def _true(rest: Rest, tenant: str, kind: str) -> list[Json]:
    return _conditions(rest, tenant, kind, "True")


def _false(rest: Rest, tenant: str, kind: str) -> list[Json]:
    return _conditions(rest, tenant, kind, "False")


def _conditions(rest: Rest, tenant: str, kind: str, holds: str) -> list[Json]:
    conditions: list[Json] = status(rest, tenant).get("conditions", [])
    return [each for each in conditions if (each["type"], each["status"]) == (kind, holds)]


_LEAVING = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: leaving}
spec:
  namespaces: {selector: {matchLabels: {tenant: leaving}}}
  quota: {gpus: {guarantee: 1, ceiling: 1}}
"""
