# SPDX-License-Identifier: Apache-2.0
"""The release loop against a fake API server over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from reconciler.kube.backoff import Backoff
from reconciler.kube.client import Client
from reconciler.kube.errors import ApiError
from reconciler.kube.reflector import Reflector
from reconciler.kube.resources import Target
from reconciler.quota.plan import GatedPod
from reconciler.quota.release import ReleaseHooks, ReleaseLoop, ReleaseSettings
from reconciler.quota.view import UNSCHEDULED_PODS, gated_pod
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.running import running
from tests.support.waiting import until

PATH = "/api/v1/pods"
GATE = "sluice.dev/quota"
QUICK = Backoff(first_seconds=0.01, cap_seconds=0.02)
SLOW = Backoff(first_seconds=1000.0, cap_seconds=1000.0)


def pod(name: str, *gates: str, namespace: str = "team", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"schedulingGates": [{"name": gate} for gate in gates or (GATE,)]},
    }


def path(name: str) -> str:
    return f"/api/v1/namespaces/team/pods/{name}"


@dataclass
class Heard:
    released: list[str] = field(default_factory=list)
    failed: list[tuple[str, int]] = field(default_factory=list)
    guarded: set[str] = field(default_factory=lambda: {"team"})

    def hooks(self) -> ReleaseHooks:
        return ReleaseHooks(self.on_released, self.on_failed)

    def on_released(self, pod: GatedPod) -> None:
        self.released.append(pod.name)

    def on_failed(self, pod: GatedPod, error: ApiError) -> None:
        self.failed.append((pod.name, error.status))


@asynccontextmanager
async def releasing(
    client: Client, heard: Heard, **settings: Any
) -> AsyncIterator[tuple[ReleaseLoop, Reflector[GatedPod]]]:
    reflector = Reflector(client, UNSCHEDULED_PODS, gated_pod)
    loop = ReleaseLoop(
        client,
        reflector,
        heard.guarded.__contains__,
        ReleaseSettings(**{"pod_backoff": QUICK, "server_backoff": QUICK, **settings}),
        heard.hooks(),
    )
    async with running(reflector.run()), running(loop.run()):
        await reflector.synced.wait()
        yield loop, reflector


def gates(fake: FakeApiServer, name: str, namespace: str = "team") -> list[str]:
    found = fake.find(PATH, name, namespace)
    assert found is not None
    return [gate["name"] for gate in found["spec"]["schedulingGates"]]


async def test_pods_that_wait_and_pods_that_come_are_released_once(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.put(PATH, pod("before"))
    async with releasing(client, heard) as (_, reflector):
        fake.put(PATH, pod("after"))
        await until(lambda: len(heard.released) == 2)
        await until(lambda: len(reflector) == 0)
    assert sorted(heard.released) == ["after", "before"]
    assert gates(fake, "before") == gates(fake, "after") == []
    assert sum(seen.method == "PATCH" for seen in fake.seen) == 2


async def test_others_gates_deleted_pods_and_unguarded_namespaces_are_left_alone(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.put(PATH, pod("kueue", GATE, "kueue.x-k8s.io/admission"))
    fake.put(PATH, pod("foreign", "other/gate"))
    fake.put(PATH, pod("deleting", deletionTimestamp="2026-01-01T00:00:00Z"))
    fake.put(PATH, pod("elsewhere", namespace="other"))
    async with releasing(client, heard):
        fake.put(PATH, pod("last"))
        await until(lambda: heard.released == ["last"])
    assert [seen.path for seen in fake.seen if seen.method == "PATCH"] == [path("last")]


async def test_a_pod_is_released_when_the_last_gate_of_others_is_gone(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.put(PATH, pod("a", "kueue.x-k8s.io/admission", GATE))
    async with releasing(client, heard):
        fake.put(PATH, pod("a", GATE))
        await until(lambda: heard.released == ["a"])
    assert gates(fake, "a") == []


async def test_pods_are_looked_at_again_when_other_namespaces_are_guarded(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.put(PATH, pod("a", namespace="new"))
    async with releasing(client, heard) as (loop, reflector):
        await until(lambda: len(reflector) == 1)
        heard.guarded.add("new")
        loop.recheck()
        await until(lambda: heard.released == ["a"])


async def test_a_pod_that_changed_meanwhile_is_looked_at_again(
    fake: FakeApiServer, client: Client
) -> None:
    heard, raced = Heard(), list[str]()

    def race(patched: str) -> None:
        if not raced:
            raced.append(patched)
            fake.put(PATH, pod("a", labels={"x": "y"}))

    fake.on_patch = race
    fake.put(PATH, pod("a"))
    async with releasing(client, heard):
        await until(lambda: heard.released == ["a"])
    found = fake.find(PATH, "a", "team")
    assert found is not None
    assert found["metadata"]["labels"] == {"x": "y"}
    assert gates(fake, "a") == []
    assert heard.failed == []


async def test_a_gate_added_meanwhile_is_not_overlooked(
    fake: FakeApiServer, client: Client
) -> None:
    """A conflict means to decide again, not to send the same again with a newer version."""
    heard = Heard()

    def gate_again(_patched: str) -> None:
        fake.put(PATH, pod("a", GATE, "other/gate"))

    fake.on_patch = gate_again
    fake.put(PATH, pod("a"))
    async with releasing(client, heard) as (_, reflector):
        await until(lambda: any(len(seen.gates) == 2 for seen in reflector.values()))
        fake.on_patch = lambda _: None
        fake.put(PATH, pod("b"))
        await until(lambda: heard.released == ["b"])
    assert gates(fake, "a") == [GATE, "other/gate"]


async def test_a_pod_that_another_replica_released_first_is_no_failure(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()

    def release_first(_patched: str) -> None:
        fake.on_patch = lambda _: None
        bare = pod("a")
        del bare["spec"]["schedulingGates"]
        fake.put(PATH, bare)

    fake.on_patch = release_first
    fake.put(PATH, pod("a"))
    async with releasing(client, heard) as (_, reflector):
        await until(lambda: len(reflector) == 0 and fake.count("PATCH", path("a")) == 1)
        fake.put(PATH, pod("b"))
        await until(lambda: heard.released == ["b"])
    assert heard.failed == []
    assert fake.count("PATCH", path("a")) == 1


async def test_a_pod_that_fails_backs_off_alone_and_others_go_on(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.faults.append(Fault("PATCH", path("bad"), 500, "webhook failed", times=1_000_000))
    fake.put(PATH, pod("bad"))
    async with releasing(client, heard, pod_backoff=SLOW, server_backoff=SLOW):
        await until(lambda: heard.failed == [("bad", 500)])
        for number in range(5):
            fake.put(PATH, pod("bad", labels={"n": str(number)}))
            fake.put(PATH, pod(f"good{number}"))
        await until(lambda: len(heard.released) == 5)
    assert fake.count("PATCH", path("bad")) == 1


async def test_a_pod_that_fails_for_a_while_is_released_in_the_end(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.faults.append(Fault("PATCH", path("a"), 422, "no", times=3))
    fake.put(PATH, pod("a"))
    async with releasing(client, heard):
        await until(lambda: heard.released == ["a"])
    assert heard.failed == [("a", 422)] * 3


async def test_a_server_that_asks_to_slow_down_is_left_in_peace_for_all_pods(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.faults.append(
        Fault("PATCH", path("a"), 429, "slow", {"Retry-After": "1000"}, times=1_000_000)
    )
    fake.put(PATH, pod("a"))
    async with releasing(client, heard, concurrency=1) as (_, reflector):
        await until(lambda: heard.failed == [("a", 429)])
        fake.put(PATH, pod("b"))
        await until(lambda: len(reflector) == 2)
    assert sum(seen.method == "PATCH" for seen in fake.seen) == 1


async def test_no_more_patches_than_allowed_are_under_way(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.put(PATH, pod("first"))
    async with releasing(client, heard, concurrency=3) as (_, reflector):
        await until(lambda: heard.released == ["first"] and len(reflector) == 0)
        fake.hangs = True
        for number in range(20):
            fake.put(PATH, pod(f"p{number}"))
        await until(lambda: len(reflector) == 20)
        await until(lambda: sum(seen.method == "PATCH" for seen in fake.seen) >= 4)
    assert sum(seen.method == "PATCH" for seen in fake.seen) == 4


async def test_a_pod_that_is_gone_is_no_failure(fake: FakeApiServer, client: Client) -> None:
    heard = Heard()
    fake.on_patch = lambda patched: (
        fake.remove(PATH, "a", "team") if patched.endswith("/a") else None
    )
    fake.put(PATH, pod("a"))
    async with releasing(client, heard) as (_, reflector):
        await until(lambda: len(reflector) == 0 and fake.find(PATH, "a", "team") is None)
        fake.put(PATH, pod("b"))
        await until(lambda: heard.released == ["b"])
    assert heard.failed == []


async def test_a_pod_made_again_under_the_same_name_is_released_too(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    fake.put(PATH, pod("a"))
    async with releasing(client, heard) as (loop, _):
        await until(lambda: heard.released == ["a"])
        fake.remove(PATH, "a", "team")
        fake.put(PATH, pod("a", uid="another"))
        await until(lambda: heard.released == ["a", "a"])
        await until(lambda: not loop._settled)


async def test_a_released_pod_is_not_patched_again_before_the_watch_has_caught_up(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    async with releasing(client, heard) as (loop, reflector):
        await fake.wait_watches()
        fake.put(PATH, pod("a"))
        await until(lambda: len(reflector) == 1)
        fake.is_silent = True
        await until(lambda: heard.released == ["a"])
        loop.recheck()
        fake.is_silent = False
        await until(lambda: len(reflector) == 0)
    assert fake.count("PATCH", path("a")) == 1


async def test_a_pod_that_changes_while_it_waits_for_its_turn_is_decided_on_anew(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    pods = Reflector(client, UNSCHEDULED_PODS, gated_pod)
    turns = Turns()
    loop = ReleaseLoop(
        turns, pods, heard.guarded.__contains__, ReleaseSettings(concurrency=1), heard.hooks()
    )
    fake.put(PATH, pod("first", creationTimestamp="2026-01-01T00:00:00Z"))
    fake.put(PATH, pod("second", creationTimestamp="2026-01-01T00:00:01Z"))
    fake.put(PATH, pod("third", creationTimestamp="2026-01-01T00:00:02Z"))
    async with running(pods.run()):
        await pods.synced.wait()
        async with running(loop.run()):
            await until(lambda: turns.patched == ["first"])
            fake.put(PATH, pod("second", GATE, "other/gate"))
            await until(lambda: any(len(seen.gates) == 2 for seen in pods.values()))
            turns.go.set()
            await until(lambda: len(turns.patched) == 2)
    assert turns.patched == ["first", "third"]


class Turns:
    """A patcher whose calls wait for a sign."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.patched: list[str] = []

    async def patch_json(
        self, target: Target, operations: Sequence[Mapping[str, object]]
    ) -> Mapping[str, object]:
        assert operations
        self.patched.append(target.name)
        await self.go.wait()
        return {}


async def test_an_unreachable_server_is_tried_again_and_nothing_is_lost(
    fake: FakeApiServer, client: Client
) -> None:
    heard = Heard()
    names = [f"p{number}" for number in range(30)]
    fake.faults += [Fault("PATCH", path(name), 503, "", times=1) for name in names[:10]]
    for name in names:
        fake.put(PATH, pod(name))
    async with releasing(client, heard):
        await until(lambda: len(heard.released) == 30)
    assert sorted(heard.released) == sorted(names)
