# SPDX-License-Identifier: Apache-2.0
"""What people see of quota on the real control plane: tenants, waiting pods, and usage."""

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.integration.quota.conftest import LENDER, NAME, command, gpus, is_released, says
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, until

_WRITTEN_EVERY_SECONDS: Final = 5.0


def columns(team: Team, tenant: str) -> dict[str, str]:
    """Return what `kubectl get tenants` prints of one, by column."""
    lines = team.kubectl("get", "tenants").out.splitlines()
    starts = [lines[0].index(title) for title in _titles(lines[0])]
    line = next(line for line in lines[1:] if line.split()[0] == tenant)
    cells = [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return dict(zip(_titles(lines[0]), cells, strict=True))


def _titles(line: str) -> list[str]:
    return [title.strip() for title in line.split("  ") if title.strip()]


async def test_kubectl_shows_what_a_tenant_uses_and_what_waits_and_follows(
    team: Team, rest: Rest
) -> None:
    says(rest, used="0", pending=0, guarantee="1", ceiling="3")
    team.create(gpus(2, "first"), gpus(2, "second"))

    found = says(rest, used="2", pending=1, borrowed="1")
    waiting = next(item for item in team.pods() if not is_released(item))
    assert found["oldestWait"] == waiting["metadata"]["creationTimestamp"]
    assert found["pools"][0]["used"] == "2"
    shown = columns(team, NAME)
    assert (shown["GUARANTEE"], shown["CEILING"], shown["USED"]) == ("1", "3", "2")
    assert (shown["BORROWED"], shown["PENDING"]) == ("1", "1")
    assert shown["OLDEST WAIT"]

    team.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    assert "oldestWait" not in says(rest, used="0", pending=0)


async def test_the_command_prints_what_kubectl_does(
    sluice: InstalledSluice, team: Team, rest: Rest
) -> None:
    team.create(gpus(3, "all"), gpus(1, "more"))
    says(rest, used="3", pending=1, borrowed="2")

    lines = command(sluice, "tenants").stdout.splitlines()
    assert lines[0].split("  ")[0] == "NAME"
    row = next(line.split() for line in lines if line.startswith(NAME))
    assert row[:6] == [NAME, "1", "3", "3", "2", "1"]
    assert row[6].endswith("s")
    found = json.loads(command(sluice, "tenants", "-o", "json").stdout)
    used = {item["name"]: item["status"]["used"] for item in found}
    assert (used[NAME], used[LENDER]) == ("3", "0")


async def test_a_waiting_pod_is_explained_from_the_cluster_alone(
    sluice: InstalledSluice, team: Team, rest: Rest
) -> None:
    team.create(gpus(3, "all"))
    says(rest, used="3", pending=0)
    team.create(gpus(1, "more"))
    says(rest, used="3", pending=1)

    text = command(sluice, "explain", "pod", f"{team.namespace}/more").stdout
    assert f"{team.namespace}/more   asked 1 GPU   h100   by whole-h100 (generation " in text
    assert "place 1 of 1 in cohort main" in text
    assert "holds it back: needs 1 GPU within seen's ceiling of 3 GPUs" in text
    assert f"held by:       {team.namespace}/all (3 GPUs)" in text
    found = json.loads(
        command(sluice, "explain", "pod", "more", "-n", team.namespace, "-o", "json").stdout
    )
    assert (found["tenant"], found["waiting"]["reason"]) == (NAME, "Ceiling")
    assert "could go to:   1 of 7 nodes, best first: h100-whole (10)" in text
    released = command(sluice, "explain", "pod", f"{team.namespace}/all").stdout
    assert "3 GPUs of seen, borrowed" in released
    assert "node:          h100-whole" in released
    assert "could go to:   1 of 7 nodes, best first: h100-whole (10)" in released


async def test_a_released_pod_that_is_on_no_node_is_told_what_becomes_of_each(
    sluice: InstalledSluice, team: Team, rest: Rest
) -> None:
    lonely = gpus(1, "lonely")
    # Affinity between pods is the scheduler's alone, so quota releases it all the same.
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    lonely["spec"]["affinity"] = {"podAffinity": required}
    team.create(lonely)
    says(rest, used="1")

    arguments = ("explain", "pod", f"{team.namespace}/lonely")
    found = json.loads(command(sluice, *arguments, "-o", "json").stdout)
    assert (found["phase"], found["node"]) == ("Live", None)
    assert [each["name"] for each in found["nodes"]["standing"]] == ["h100-whole"]
    out = {each["reason"]: each["nodes"] for each in found["nodes"]["out"]}
    assert sum(map(len, out.values())) == 6
    text = command(sluice, *arguments).stdout
    assert "node:          none yet" in text
    assert all(f"{reason}\n" in text for reason in out)


async def test_what_cannot_be_explained_is_one_line(
    sluice: InstalledSluice, team: Team, control_plane: ControlPlane
) -> None:
    none = command(sluice, "explain", "pod", "none", "-n", team.namespace, code=2)
    assert none.stderr == f"error: there is no pod none in namespace {team.namespace}\n"
    nobody = str(control_plane.add_user(f"nobody-{secrets.token_hex(3)}"))
    for arguments in (("tenants",), ("explain", "pod", "none")):
        refused = command(sluice, *arguments, "--kubeconfig", nobody, code=2)
        assert refused.stderr.startswith("error: not permitted: ")
        assert refused.stderr.count("\n") == 1


async def test_what_was_used_is_in_the_audit_log_once_the_leader_stops(
    sluice: InstalledSluice, team: Team, rest: Rest
) -> None:
    team.create(gpus(2, "worker"))
    says(rest, used="2")
    team.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    says(rest, used="0")
    sluice.stop()
    try:
        found = json.loads(
            command(sluice, "usage", "--audit", str(sluice.audit), "-o", "json").stdout
        )
        table = command(sluice, "usage", "--since", "7d", "--audit", str(sluice.audit)).stdout
    finally:
        sluice.start()
    (row,) = (row for row in found["usage"] if row["tenant"] == NAME)
    assert (row["pool"], row["mode"]) == ("", "Exclusive")
    assert row["microGpuSeconds"] > 0
    assert found["badLines"] == {}
    assert table.splitlines()[0].split() == ["TENANT", "POOL", "MODE", "GPU-HOURS"]
    assert "seen" in table


async def test_a_new_leader_goes_on_with_what_was_idle(
    sluice: InstalledSluice, team: Team, rest: Rest
) -> None:
    team.create(gpus(3, "first"))
    says(rest, used="3")
    team.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    (before,) = says(rest, used="0")["idle"]
    sluice.stop()
    sluice.start()
    team.create(gpus(2, "second"))
    (after,) = says(rest, used="2")["idle"]
    assert after["observedSeconds"] - before["observedSeconds"] == after["at"] - before["at"]
    assert after["last"] == 2000
    assert max(after["peaks"]) == max(before["peaks"])


async def test_metrics_say_what_statuses_say(
    sluice: InstalledSluice, team: Team, rest: Rest
) -> None:
    team.create(gpus(3, "all"), gpus(1, "more"))
    says(rest, used="3", pending=1)
    metric = Running(sluice, Path()).metric
    until(lambda: metric("sluice_tenant_used_gpus", tenant=NAME, pool="") == 3, "use in metrics")
    assert metric("sluice_tenant_borrowed_gpus", tenant=NAME, pool="") == 2
    assert metric("sluice_tenant_pending_pods", tenant=NAME) == 1
    assert metric("sluice_overcommitted_gpus", pool="") == 0
    spent = {"tenant": NAME, "pool": "", "mode": "Exclusive"}
    until(lambda: metric("sluice_gpu_seconds_total", **spent) > 3, "GPU-seconds of 3 GPUs")


async def test_metrics_say_what_gpus_of_a_model_come_to(
    sluice: InstalledSluice, team: Team, rest: Rest
) -> None:
    metric = Running(sluice, Path()).metric
    model = "NVIDIA-H100-80GB-HBM3"
    until(
        lambda: metric("sluice_gpus_capacity_milli", model=model) == 8000 + 8000 + 7250,
        "what whole, shared and cut H100 come to",
    )
    says(rest, used="0")
    before = _steady(lambda: metric("sluice_gpus_allocated_milli", model=model))
    team.create(gpus(3, "all"))
    until(
        lambda: metric("sluice_gpus_allocated_milli", model=model) == before + 3000,
        "three more that are given out",
    )
    until(
        lambda: (metric("sluice_gpu_fragmentation_milli", model=model) or 0) > 0,
        "what pods of three GPUs cannot use of shares and instances",
    )
    assert metric("sluice_gpu_memory_stranded_mib", model=model) == 0


def _steady(read: Callable[[], float]) -> float:
    """Return a value once it has stood for longer than gauges of models are written apart."""
    value, since = read(), time.monotonic()

    def stands() -> bool:
        nonlocal value, since
        if (now := read()) != value:
            value, since = now, time.monotonic()
        return time.monotonic() - since > _WRITTEN_EVERY_SECONDS + 2

    until(stands, "a gauge that moves no more", seconds=60)
    return value
