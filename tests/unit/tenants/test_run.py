# SPDX-License-Identifier: Apache-2.0
"""Statuses are written to the API, not too often, again after errors, and not by a past leader."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from policies.quota.state import QuotaState
from reconciler.kube.backoff import Backoff
from reconciler.kube.client import Page
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    UnavailableError,
)
from reconciler.kube.resources import Selection, Target
from reconciler.tenants.actuate import FIELD_MANAGER, StatusWriter, WriteLimits
from reconciler.tenants.inheriting import inherit_idleness
from reconciler.tenants.plan import Write
from reconciler.tenants.run import Pace, TenantController
from reconciler.tenants.view import Seen, seen
from tests.support.planning import World, node, tenant
from tests.support.running import running
from tests.support.waiting import until

TENANTS = "/apis/sluice.dev/v1alpha1/tenants"
QUICK = Pace(0.0, 0.01, 0.05, Backoff(0.01, 0.02))


@dataclass
class Applier:
    """Answers each apply with the next of `answers`, then as a good server would."""

    answers: list[ApiError] = field(default_factory=list)
    sent: list[tuple[str, Any, str]] = field(default_factory=list)
    version: int = 100

    async def apply(
        self, target: Target, body: Mapping[str, object], *, field_manager: str, force: bool = True
    ) -> Mapping[str, object]:
        self.sent.append((target.path, body, field_manager))
        if self.answers:
            raise self.answers.pop(0)
        self.version += 1
        metadata: Any = body["metadata"]
        return {**body, "metadata": {**metadata, "resourceVersion": str(self.version)}}


def item(name: str = "chat", version: int = 7, **status: object) -> Seen:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return seen({"metadata": metadata, "status": status})


def write(name: str = "chat", **status: object) -> Write:
    return Write(name, f"uid-{name}", status)


async def test_a_status_is_applied_to_this_very_object_by_its_one_owner() -> None:
    applier = Applier()
    assert await StatusWriter(applier, lambda: True).carry_out([write(used="1")]) == 0
    ((path, body, manager),) = applier.sent
    assert path == f"{TENANTS}/chat/status"
    assert manager == FIELD_MANAGER == "sluice-status"
    assert body["metadata"] == {"name": "chat", "uid": "uid-chat"}
    assert body["status"] == {"used": "1"}


async def test_who_no_longer_leads_writes_nothing() -> None:
    applier = Applier()
    await StatusWriter(applier, lambda: False).carry_out([write(used="1")])
    assert applier.sent == []


async def test_what_was_written_counts_until_the_watch_shows_something_newer() -> None:
    writer = StatusWriter(Applier(), lambda: True)
    await writer.carry_out([write(used="1")])
    (known,) = writer.newest([item(version=7, used="0")])
    assert (known.status["used"], known.version) == ("1", 101)
    (known,) = writer.newest([item(version=102, used="9")])
    assert known.status["used"] == "9"


@pytest.mark.parametrize("error", [ConflictError("x"), NotFoundError("x")])
async def test_an_object_that_is_another_by_now_is_left_to_its_watch(error: ApiError) -> None:
    assert await StatusWriter(Applier([error]), lambda: True).carry_out([write()]) == 0


@pytest.mark.parametrize("error", [UnavailableError("x"), ForbiddenError("x")])
async def test_a_failed_write_is_told_and_to_be_tried_again(error: ApiError) -> None:
    told: list[ApiError] = []
    writer = StatusWriter(Applier([error]), lambda: True, failed=told.append)
    assert await writer.carry_out([write()]) == 1
    assert told == [error]


async def test_every_tenant_has_its_turn_though_a_round_is_bounded() -> None:
    applier = Applier()
    writer = StatusWriter(applier, lambda: True, WriteLimits(concurrency=1, per_round=2))
    due = [write(f"t{number}") for number in range(5)]
    for _ in range(3):
        writer.newest([item(each.name) for each in due])
        await writer.carry_out(due)
    assert {path for path, _, _ in applier.sent} == {f"{TENANTS}/t{n}/status" for n in range(5)}
    assert len(applier.sent) == 6


class Cluster:
    """The picture of a world, as fresh as a test says."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fresh = True
        self.looks = 0
        self.wakers: list[Callable[[], None]] = []

    @property
    def state(self) -> QuotaState:
        return self.world.state

    @property
    def is_fresh(self) -> bool:
        self.looks += 1
        return self.fresh

    def on_change(self, waker: Callable[[], None]) -> None:
        self.wakers.append(waker)


async def test_inherited_histories_are_read_page_by_page_before_anything_is_planned() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    history = {
        "pool": "",
        "idleAfterSeconds": 1800,
        "observedSeconds": 3600,
        "at": world.now,
        "last": 500,
        "peaks": [0, 500],
    }
    status = {"idle": [history]}
    raw = {"metadata": {"name": "chat", "uid": "u"}, "status": status}
    pages: list[Page | GoneError] = [
        Page([], "1", "next"),
        GoneError("x"),
        Page([], "2", "next"),
        Page([raw], "2", ""),
    ]

    class Lister:
        async def list_page(
            self, selection: Selection, *, limit: int, continue_token: str = ""
        ) -> Page:
            found = pages.pop(0)
            if isinstance(found, GoneError):
                raise found
            return found

    await inherit_idleness(Lister(), world.state)
    assert pages == []
    assert world.state.history(world.tenants["chat"], "").peak(world.now) == 500


@pytest.mark.parametrize("error", [NotFoundError("x"), ForbiddenError("x"), UnavailableError("x")])
async def test_what_cannot_be_inherited_is_unknown_and_stops_nothing(error: ApiError) -> None:
    class Lister:
        async def list_page(
            self, selection: Selection, *, limit: int, continue_token: str = ""
        ) -> Page:
            raise error

    world = World([tenant("chat", 2, 4)], [node("n")])
    await inherit_idleness(Lister(), world.state)
    world.state.tick(world.now)
    assert world.state.history(world.tenants["chat"], "").peak(world.now) is None


class Server:
    """Tenants in memory, with the verbs that the controller uses; a watch only stays silent."""

    def __init__(self, *names: str, served: bool = True) -> None:
        self.served = served
        self.applier = Applier()
        self.items = [
            {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"}}
            for name in names
        ]

    async def serves(self, resource: object) -> bool:
        return self.served

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        return Page(self.items, "50", "")

    def watch(self, *arguments: object, **options: object) -> Any:
        return _Silent()


class _Silent:
    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> object:
        await asyncio.Event().wait()
        raise StopAsyncIteration


def controller(world: World, server: Server, told: list[int]) -> tuple[TenantController, Cluster]:
    cluster = Cluster(world)
    writer = StatusWriter(server.applier, lambda: True)
    return (
        TenantController(
            cluster,
            writer,
            lambda: world.now,
            lambda _state, standing: told.append(len(standing)),
            QUICK,
        ),
        cluster,
    )


async def test_a_change_of_the_picture_reaches_the_status_and_the_same_is_written_once() -> None:
    world, server, told = World([tenant("chat", 2, 4)], [node("n")]), Server("chat"), list[int]()
    control, cluster = controller(world, server, told)
    sent = server.applier.sent
    async with running(control.run(server)):
        await until(lambda: bool(sent))
        rounds = len(told)
        await until(lambda: len(told) > rounds + 3)
        assert len(sent) == 1
        world.run("chat", 1)
        for waker in cluster.wakers:
            waker()
        await until(lambda: sent[-1][1]["status"]["used"] == "1")
        assert len(sent) == 2


async def test_nothing_is_written_by_an_old_picture() -> None:
    world, server, told = World([tenant("chat", 2, 4)], [node("n")]), Server("chat"), list[int]()
    control, cluster = controller(world, server, told)
    cluster.fresh = False
    async with running(control.run(server)):
        await until(lambda: cluster.looks > 2)
        assert (told, server.applier.sent) == ([], [])
        cluster.fresh = True
        await until(lambda: bool(server.applier.sent))


async def test_where_tenants_are_not_served_metrics_go_on() -> None:
    world, told = World([tenant("chat", 2, 4)], [node("n")]), list[int]()
    server = Server(served=False)
    control, _ = controller(world, server, told)
    async with running(control.run(server)):
        await until(lambda: len(told) > 2)
    assert server.applier.sent == []


async def test_a_failed_write_is_made_up_for() -> None:
    world, server, told = World([tenant("chat", 2, 4)], [node("n")]), Server("chat"), list[int]()
    server.applier.answers = [UnavailableError("x"), UnavailableError("x")]
    control, _ = controller(world, server, told)
    async with running(control.run(server)):
        await until(lambda: len(server.applier.sent) == 3)
