# SPDX-License-Identifier: Apache-2.0
"""On the real control plane: who has to go, how many at once and for whom; who borrows first."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from policies.model.policyset import PolicySet
from policies.model.settings import Budget
from policies.quota.charge import read_charge
from reconciler.kube.client import Client
from reconciler.kube.resources import PODS, Resource, Target
from tests.controlplane import ControlPlane
from tests.integration.conftest import MakeNamespace
from tests.integration.reclaim.scene import GATE, REASON, Scene, annotation, playing

_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses")
_SIZE: Final = "sluice.dev/gang-size"
_GANG: Final = {"sluice.dev/gang": "train"}
_URGENT: Final = 1000
_PER_SECONDS: Final = 3
_IDLE_SECONDS: Final = 3

_POLICY: Final = """
apiVersion: sluice.dev/v1alpha1
kind: ReclaimPolicy
metadata: {name: quick}
spec: {cohorts: [main], notice: 1s}
"""


def _tenant(name: str, quota: str, **spec: object) -> str:
    fields = "".join(f"  {key}: {value}\n" for key, value in spec.items())
    return f"""---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {name}}}
spec:
  namespaces: {{names: [{name}]}}
  quota: {quota}
  cohort: main
{fields}"""


def _gated(pod: dict[str, Any]) -> bool:
    return {"name": GATE} in pod["spec"].get("schedulingGates", [])


@pytest.fixture
async def urgent(client: Client) -> AsyncIterator[str]:
    """The name of a class of pods above the threshold."""
    name = "reclaim-urgent"
    body = {"metadata": {"name": name}, "value": _URGENT, "preemptionPolicy": "Never"}
    await client.create(Target(_CLASSES), body)
    yield name
    await client.delete(Target(_CLASSES, name))


async def test_the_surplus_of_gangs_goes_first_the_young_stay_and_nobody_goes_for_the_humble(
    control_plane: ControlPlane,
    client: Client,
    make_namespace: MakeNamespace,
    tmp_path: Path,
    urgent: str,
) -> None:
    borrowers = [make_namespace(), make_namespace()]
    scene = Scene(client, make_namespace(), borrowers, tmp_path / "audit.jsonl")
    plain, young = borrowers
    text = _POLICY + _tenant(scene.owner, "{gpus: {guarantee: 3, ceiling: 3}}")
    text += _tenant(plain, "{gpus: {ceiling: 9}}", priority=5)
    text += _tenant(young, "{gpus: {ceiling: 9}}", minRuntime="1h")
    text += _SETTINGS
    async with playing(control_plane, scene, text, gpus=5):
        for name in ("g0", "g1", "g2"):
            await scene.create(plain, name, labels=_GANG, annotations={_SIZE: "3"})
        await scene.runs(plain, "g0", "g1", "g2")
        await scene.create(plain, "solo")
        await scene.create(young, "new")
        await scene.runs(plain, "solo")
        await scene.runs(young, "new")
        for name in ("g0", "g1", "g2"):
            # Two of them would do from now on.
            patch = {"metadata": {"annotations": {_SIZE: "2"}}}
            await client.patch_merge(Target(PODS, name, plain), patch)

        await scene.create(scene.owner, "humble")
        await scene.until(
            scene.owner, lambda pods: "NoNodeFits" in (annotation(pods["humble"], REASON) or "")
        )
        above = {"spec": {"priorityClassName": urgent}}
        await scene.create(scene.owner, "first", **above)
        await scene.runs(scene.owner, "first")
        await scene.create(scene.owner, "second", **above)
        await scene.runs(scene.owner, "second")

        lines = await scene.audited(2, action="Evict", outcome="Done")
        ended = [line["name"] for line in lines]
        assert ended[0] in {"g0", "g1", "g2"}
        assert ended[1:] == ["solo"]
        assert set(await scene.look(plain)) == {"g0", "g1", "g2"} - {ended[0]}
        assert set(await scene.look(young)) == {"new"}
        assert _gated((await scene.look(scene.owner))["humble"])
        lines = await scene.audited(2, action="Notify", outcome="Done")
        gets = [line["beneficiary"]["name"] for line in lines]
        assert gets == [f"{scene.owner}/first", f"{scene.owner}/second"]


_SETTINGS: Final = f"""---
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {{name: cluster}}
spec: {{priorityThreshold: {_URGENT}}}
"""


def _budgeted(policies: PolicySet) -> PolicySet:
    budget = Budget(per_tenant=1, per_cluster=2, per_seconds=_PER_SECONDS)
    return replace(policies, settings=replace(policies.settings, budget=budget))


async def test_no_more_go_within_a_while_than_a_tenant_and_the_cluster_can_bear(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    borrowers = [make_namespace() for _ in range(3)]
    scene = Scene(client, make_namespace(), borrowers, tmp_path / "audit.jsonl")
    text = _POLICY + _tenant(scene.owner, "{gpus: {guarantee: 4, ceiling: 4}}")
    for name in borrowers:
        text += _tenant(name, "{gpus: {ceiling: 9}}")
    async with playing(control_plane, scene, text, 6, _budgeted):
        counts = dict(zip(borrowers, (4, 1, 1), strict=True))
        for name, count in counts.items():
            for number in range(count):
                await scene.create(name, f"b{number}")
        for name, count in counts.items():
            await scene.runs(name, *(f"b{number}" for number in range(count)))

        wanted = [f"w{number}" for number in range(3)]
        for each in wanted:
            await scene.create(scene.owner, each)
        await scene.runs(scene.owner, *wanted)

        lines = await scene.audited(len(wanted), action="Evict", outcome="Done")
        assert len(lines) == len(wanted)
        times = [datetime.fromisoformat(line["time"]) for line in lines]
        # Whole seconds are counted.
        span = timedelta(seconds=_PER_SECONDS - 1)
        for at in times:
            near = [line for line, t in zip(lines, times, strict=True) if at <= t < at + span]
            assert len(near) <= 2
            assert max(Counter(line["giver"]["tenant"] for line in near).values()) == 1


def _lending_soon(policies: PolicySet) -> PolicySet:
    tenants = {
        name: replace(t, lending=replace(t.lending, idle_after_seconds=_IDLE_SECONDS))
        for name, t in policies.tenants.items()
    }
    owned = {name: tenants[t.name] for name, t in policies.tenant_by_namespace.items()}
    return replace(policies, tenants=tenants, tenant_by_namespace=owned)


async def test_what_stood_idle_is_lent_by_priority_then_weight_and_comes_back_from_the_lowest(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    borrowers = [make_namespace() for _ in range(3)]
    scene = Scene(client, make_namespace(), borrowers, tmp_path / "audit.jsonl")
    first, heavy, light = borrowers
    pool = scene.node
    text = _POLICY + _POOL.format(pool=pool)
    text += _tenant(scene.owner, f"{{pools: {{{pool}: {{guarantee: 5}}}}}}")
    borrow = f"{{pools: {{{pool}: {{ceiling: 9}}}}}}"
    text += _tenant(light, borrow, weight=1)
    text += _tenant(heavy, borrow, weight=3)
    text += _tenant(first, borrow, priority=5)
    for number in range(4):
        for name in (light, heavy):
            await scene.create(name, f"b{number}")
    await scene.create(first, "b0")
    async with playing(control_plane, scene, text, 5, _lending_soon):
        shares = {first: 1, heavy: 3, light: 1}
        for name, count in shares.items():
            pods = await scene.until(
                name,
                lambda pods, count=count: (  # type: ignore[misc] # bound at once
                    sum(not _gated(pod) for pod in pods.values()) == count
                ),
            )
            assert all(_led_for(pod) >= _IDLE_SECONDS for pod in pods.values() if not _gated(pod))
        await scene.runs(first, "b0")

        for name in ("w0", "w1", "w2", "w3"):
            await scene.create(scene.owner, name)
        await scene.runs(scene.owner, "w0", "w1", "w2", "w3")
        lines = await scene.audited(4, action="Evict", outcome="Done")
        givers = Counter(line["giver"]["tenant"] for line in lines)
        assert givers == {heavy: 3, light: 1}
        assert set(await scene.look(first)) == {"b0"}


def _led_for(pod: dict[str, Any]) -> float:
    """Return for how many seconds a pod's leader had led when it released it."""
    charge = read_charge(annotation(pod, "state.sluice.dev/charge"))
    began = str(annotation(pod, "state.sluice.dev/term")).split(" ")[2]
    assert charge is not None
    return charge.at - datetime.fromisoformat(began).timestamp()


_POOL: Final = """---
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {{name: {pool}}}
spec: {{nodes: {{selector: {{matchLabels: {{kubernetes.io/hostname: {pool}}}}}}}}}
"""
