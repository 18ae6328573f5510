# SPDX-License-Identifier: Apache-2.0
"""Electors, evictions and Events against a real API server, with processes killed and frozen.

It has a control plane of its own, since others could not work on one that is being broken.
"""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from reconciler.kube.client import Client
from reconciler.kube.elector import Elector, ElectorSettings, Leadership
from reconciler.kube.errors import BudgetError, ConflictError, NotFoundError
from reconciler.kube.events import EventType, Recorder, RecorderSettings, Regarding
from reconciler.kube.intents import INTENTS, Intent, IntentKind
from reconciler.kube.resources import LEASES, NODES, POD_DISRUPTION_BUDGETS, PODS, Resource, Target
from tests.controlplane import ControlPlane, nodes
from tests.support.breakable_link import BreakableLink
from tests.support.candidate import Told
from tests.support.running import running
from tests.support.waiting import until

CONFIGMAPS = Resource("", "v1", "configmaps")
ROOT = Path(__file__).parents[2]
APISERVER = "kube-apiserver"
SHORT = (3, 2.0, 0.4)
USUAL = (15, 10.0, 2.0)
LONG = 40.0


@pytest.fixture(scope="module")
def control_plane(binaries: Mapping[str, Path]) -> Iterator[ControlPlane]:
    with ControlPlane(binaries) as started:
        started.create_namespace("sluice")
        started.create_nodes([nodes.cpu("only")])
        yield started


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return str(request.node.name)[5:60].replace("_", "-").strip("-")


@pytest.fixture
async def free(client: Client, name: str) -> str:
    """A Lease that anyone may take at once."""
    body = {
        "metadata": {"name": name},
        "spec": {"leaseDurationSeconds": 1},
    }
    await client.create(Target(LEASES, namespace="sluice"), body)
    return name


@dataclass
class Leader:
    """An elector in this process."""

    elector: Elector
    leaderships: list[Leadership] = field(default_factory=list)
    ended: int = 0

    async def lead(self, leadership: Leadership) -> None:
        self.leaderships.append(leadership)
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1

    @property
    def leads(self) -> bool:
        return bool(self.leaderships) and self.leaderships[-1].is_held()


@asynccontextmanager
async def electing(
    client: Client, lease: str, identity: str, seconds: tuple[int, float, float] = SHORT
) -> AsyncIterator[Leader]:
    leader = Leader(Elector(client, ElectorSettings("sluice", lease, identity, *seconds)))
    async with running(leader.elector.run(leader.lead)):
        yield leader


class Candidate:
    """An elector in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[dict[str, Any]] = []

    async def hear(self) -> None:
        assert self.process.stdout
        while line := await self.process.stdout.readline():
            self.said.append(orjson.loads(line))

    def events(self) -> list[str]:
        return [said["event"] for said in self.said]


@asynccontextmanager
async def candidate(
    control_plane: ControlPlane, lease: str, **told: Any
) -> AsyncIterator[Candidate]:
    arguments = Told(
        **{
            "kubeconfig": str(control_plane.kubeconfig),
            "namespace": "sluice",
            "lease": lease,
            "identity": "process",
            "seconds": SHORT,
            **told,
        }
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.support.candidate", orjson.dumps(asdict(arguments)).decode()),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    made = Candidate(process)
    hearing = asyncio.create_task(made.hear())
    try:
        yield made
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await hearing
        process._transport.close()  # type: ignore[attr-defined]  # asyncio leaves it to the collector


async def lease_of(client: Client, name: str) -> Any:
    return await client.get(Target(LEASES, name, "sluice"))


async def test_a_leader_that_is_killed_is_followed_when_its_lease_has_run_out(
    control_plane: ControlPlane, client: Client, free: str
) -> None:
    async with candidate(control_plane, free) as first:
        await until(lambda: first.events() == ["leads"], LONG)
        async with electing(client, free, "second") as second:
            await until(lambda: second.elector.holder == "process")
            killed = time.monotonic()
            first.process.kill()
            await until(lambda: second.leads, LONG)
            assert 3 - SHORT[2] <= time.monotonic() - killed
    spec = (await lease_of(client, free))["spec"]
    assert spec["leaseTransitions"] == 2
    assert spec["leaseDurationSeconds"] == 1
    assert not spec.get("holderIdentity")


async def test_a_leader_that_gets_sigterm_is_followed_at_once(
    control_plane: ControlPlane, client: Client, free: str
) -> None:
    async with candidate(control_plane, free, seconds=USUAL) as first:
        await until(lambda: first.events() == ["leads"], LONG)
        async with electing(client, free, "second", USUAL) as second:
            await until(lambda: second.elector.holder == "process")
            first.process.send_signal(signal.SIGTERM)
            await until(lambda: "ended" in first.events(), LONG)
            ended = time.monotonic()
            await until(lambda: second.leads, LONG)
            assert time.monotonic() - ended < 3
            assert await first.process.wait() == 0


async def test_a_leader_that_was_frozen_can_neither_declare_nor_write_when_it_wakes(
    control_plane: ControlPlane, client: Client, free: str
) -> None:
    goal = Target(CONFIGMAPS, free, "sluice")
    await client.create(Target(CONFIGMAPS, namespace="sluice"), {"metadata": {"name": free}})
    async with candidate(control_plane, free, goal=free) as first:
        await until(lambda: first.events() == ["leads"], LONG)
        async with electing(client, free, "second") as second:
            first.process.send_signal(signal.SIGSTOP)
            await until(lambda: second.leads, LONG)
            (inherited,) = second.leaderships[0].inherited
            assert (inherited.name, inherited.kind) == (free, IntentKind.RELEASE)
            bump = {"op": "add", "path": "/metadata/annotations", "value": {"settled": "1"}}
            await client.patch_json(goal, [bump])
            await second.leaderships[0].declare([])
            first.process.send_signal(signal.SIGCONT)
            await until(lambda: "not written" in first.events(), LONG)
            assert second.leads
            assert second.ended == 0
    assert first.events()[:4] == ["leads", "ends", "not declared", "not written"]
    assert first.said[1]["is_held"] is False
    assert first.said[3]["error"] == "ConflictError"
    assert "data" not in await client.get(goal)


async def test_connections_that_are_cut_again_and_again_do_not_end_leadership(
    client: Client, link: BreakableLink, linked: Client, free: str
) -> None:
    async with electing(linked, free, "linked", (6, 4.0, 0.2)) as leader:
        await until(lambda: leader.leads)
        for number in range(20):
            link.cut()
            declared = [Intent(IntentKind.EVICTION, "team", f"p{number}", "u", "1")]
            await leader.leaderships[0].declare(declared)
        link.freeze()
        begun = time.monotonic()
        await leader.leaderships[0].declare([])
        assert time.monotonic() - begun < 4
        assert leader.leads
        assert leader.ended == 0
        lease = await lease_of(client, free)
    assert lease["metadata"]["annotations"][INTENTS] == '{"v":1,"intents":[]}'
    assert lease["spec"]["leaseTransitions"] == 1


async def test_a_leader_that_is_cut_off_stops_before_another_starts(
    client: Client, link: BreakableLink, linked: Client, free: str
) -> None:
    async with electing(linked, free, "linked") as first:
        await until(lambda: first.leads)
        async with electing(client, free, "second") as second:
            await until(lambda: second.elector.holder == "linked")
            link.is_down = True
            link.cut()
            await until(lambda: first.leads + second.leads != 1, LONG)
            await until(lambda: first.ended == 1, LONG)
            assert not second.leads
            await until(lambda: second.leads, LONG)
            link.is_down = False
            await until(lambda: first.elector.holder == "second", LONG)
            assert not first.leads


async def test_a_restart_of_the_api_server_is_lived_through(
    control_plane: ControlPlane, client: Client, free: str
) -> None:
    async with electing(client, free, "leader", (60, 50.0, 1.0)) as leader:
        await until(lambda: leader.leads)
        await asyncio.to_thread(control_plane.components.kill_component, APISERVER)
        await asyncio.to_thread(control_plane.components.start_component, APISERVER)
        await leader.leaderships[0].declare([])
        assert leader.leads
        assert leader.ended == 0


async def test_a_lease_that_somebody_damaged_or_deleted_is_put_right(
    client: Client, free: str
) -> None:
    target = Target(LEASES, free, "sluice")
    async with electing(client, free, "leader") as leader:
        await until(lambda: leader.leads)
        await leader.leaderships[0].declare([Intent(IntentKind.RELEASE, "team", "p", "u", "1")])
        garbage = {"op": "add", "path": "/metadata/annotations", "value": {INTENTS: "{", "a": "b"}}
        await client.patch_json(target, [garbage])
        await leader.leaderships[0].declare(list(leader.leaderships[0].inherited))
        await client.delete(target)
        await leader.leaderships[0].declare([Intent(IntentKind.RELEASE, "team", "q", "u", "1")])
        assert leader.leads
        assert '"q"' in (await lease_of(client, free))["metadata"]["annotations"][INTENTS]
        await client.patch_json(target, [{"op": "replace", "path": "/spec", "value": {}}])
        await until(lambda: len(leader.leaderships) == 2, LONG)
    assert [intent.name for intent in leader.leaderships[1].inherited] == ["q"]


async def test_a_lease_that_was_never_there_is_made(client: Client, name: str) -> None:
    async with electing(client, name, "leader", (1, 0.8, 0.2)) as leader:
        await until(lambda: leader.leads, LONG)
    assert (await lease_of(client, name))["spec"]["leaseTransitions"] == 1


async def test_five_hundred_intents_of_usual_length_are_taken(client: Client, free: str) -> None:
    charge = '{"tenant":"research","pool":"h100","amount":{"parts":{"1":8},"mib":655360}}'
    intents = [
        Intent(IntentKind.RELEASE, "research", f"finetune-llama-70b-{n}", "u" * 36, "1" * 9, charge)
        for n in range(500)
    ]
    async with electing(client, free, "first") as first:
        await until(lambda: first.leads)
        await first.leaderships[0].declare(intents)
    async with electing(client, free, "second") as second:
        await until(lambda: second.leads)
        assert second.leaderships[0].inherited == tuple(intents)


# Evictions


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.test/image"}
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
        },
    }


async def test_an_eviction_names_its_pod_and_heeds_budgets(
    control_plane: ControlPlane, client: Client, name: str
) -> None:
    target = Target(PODS, name, "sluice")
    await client.create(Target(PODS, namespace="sluice"), pod(name))
    await control_plane.kubectl_async(
        "wait", "--for=condition=Ready", f"pod/{name}", "-n", "sluice", "--timeout=30s"
    )
    budget = {
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
    }
    budgets = Target(POD_DISRUPTION_BUDGETS, namespace="sluice")
    await client.create(budgets, budget)
    seen: Any = await client.get(target)
    uid, version = seen["metadata"]["uid"], seen["metadata"]["resourceVersion"]
    with pytest.raises(BudgetError):
        await client.evict(target, uid=uid, version=version)
    await client.delete(Target(POD_DISRUPTION_BUDGETS, name, "sluice"))
    with pytest.raises(ConflictError):
        await client.evict(target, uid="another", version=version)
    bump = {"op": "add", "path": "/metadata/annotations", "value": {"bumped": "1"}}
    bumped: Any = await client.patch_json(target, [bump])
    with pytest.raises(ConflictError):
        await client.evict(target, uid=uid, version=version)
    with pytest.raises(ConflictError):
        await client.delete(target, uid=uid, version=version)
    version = bumped["metadata"]["resourceVersion"]
    await client.evict(target, uid=uid, version=version, dry_run=True)
    assert "deletionTimestamp" not in (await client.get(target))["metadata"]  # type: ignore[operator]
    await client.evict(target, uid=uid, version=version, grace_seconds=0)
    with pytest.raises(NotFoundError):
        await client.evict(target, uid=uid, version=version)


# Events


async def test_repeated_events_are_one_line_of_kubectl_describe(
    control_plane: ControlPlane, client: Client, name: str
) -> None:
    created: Any = await client.create(Target(PODS, namespace="sluice"), pod(name))
    regarding = Regarding("Pod", "sluice", name, created["metadata"]["uid"])
    recorder = Recorder(client, RecorderSettings(repeat_seconds=0.5))
    async with running(recorder.run()):
        for _ in range(3):
            recorder.record(regarding, "Waiting", "free 0 GPUs", EventType.WARNING, "Queue")
            # The first must be written before it is repeated.
            await until(
                lambda: not recorder._held or any(h.written for h in recorder._held.values())
            )
        recorder.record(regarding, "Released", "charged " + "€" * 1000)
    # Ended, so that all is written.
    text = (await control_plane.kubectl_async("describe", "pod", name, "-n", "sluice")).stdout
    lines = [line.split() for line in text.splitlines() if "sluice" in line and "ing" in line]
    waiting = [line for line in lines if "Waiting" in line]
    assert len(waiting) == 1, text
    assert waiting[0][0] == "Warning"
    assert "(x3" in waiting[0]
    assert waiting[0][-4:] == ["sluice", "free", "0", "GPUs"]
    assert "Released" in text


async def test_events_of_cluster_scoped_objects_are_described(
    control_plane: ControlPlane, client: Client
) -> None:
    node: Any = await client.get(Target(NODES, "only"))
    recorder = Recorder(client)
    async with running(recorder.run()):
        recorder.record(
            Regarding("Node", "", "only", node["metadata"]["uid"]), "Unpooled", "in no pool"
        )
        await until(lambda: not recorder._waiting(), LONG)
    text = (await control_plane.kubectl_async("describe", "node", "only")).stdout
    assert "in no pool" in text
