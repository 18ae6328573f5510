# SPDX-License-Identifier: Apache-2.0
"""The client against a fake API server over HTTP."""

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest

from reconciler.kube.access import Access
from reconciler.kube.client import Client
from reconciler.kube.errors import (
    AccessError,
    AlreadyExistsError,
    ApiError,
    BudgetError,
    ConflictError,
    GoneError,
    InvalidError,
    MalformedAnswerError,
    NotFoundError,
    SilenceError,
    TimedOutError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
)
from reconciler.kube.resources import NODES, PODS, Selection, Target
from reconciler.kube.stream import EventType
from reconciler.kube.transport import ClientSettings, Impersonation
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.unit.kube.conftest import FixedAccess

PATH = "/api/v1/pods"
POD = Target(PODS, "a", "team")


def pod(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", **metadata}, "spec": {}}


async def test_an_object_is_read_as_it_is(fake: FakeApiServer, client: Client) -> None:
    fake.put(PATH, pod(labels={"größe": "groß"}))
    found: Any = await client.get(POD)
    assert found["metadata"]["labels"] == {"größe": "groß"}


async def test_what_is_not_there_is_not_found(client: Client) -> None:
    with pytest.raises(NotFoundError):
        await client.get(POD)


async def test_a_list_comes_in_pages_of_one_version(fake: FakeApiServer, client: Client) -> None:
    for number in range(7):
        fake.put(PATH, pod(f"p{number}"))
    names, token, versions = [], "", set()
    while True:
        page: Any = await client.list_page(Selection(PODS), limit=3, continue_token=token)
        names += [item["metadata"]["name"] for item in page.items]
        versions.add(page.version)
        fake.put(PATH, pod(f"later{len(names)}"))
        if not (token := page.continue_token):
            break
    assert names == [f"p{number}" for number in range(7)]
    assert len(versions) == 1
    assert [seen.query.get("limit") for seen in fake.seen] == ["3", "3", "3"]
    assert all("resourceVersion" not in seen.query for seen in fake.seen)


async def test_an_expired_continue_token_is_gone(fake: FakeApiServer, client: Client) -> None:
    fake.put(PATH, pod("a"))
    fake.put(PATH, pod("b"))
    page = await client.list_page(Selection(PODS), limit=1)
    fake.compact()
    with pytest.raises(GoneError):
        await client.list_page(Selection(PODS), limit=1, continue_token=page.continue_token)


async def test_a_list_is_selected_by_the_server(fake: FakeApiServer, client: Client) -> None:
    fake.put(PATH, {**pod("bound"), "spec": {"nodeName": "n1"}})
    fake.put(PATH, pod("free"))
    page: Any = await client.list_page(Selection(PODS, "team", "spec.nodeName="), limit=9)
    assert [item["metadata"]["name"] for item in page.items] == ["free"]


@pytest.mark.parametrize(
    "body", [{"items": []}, {"metadata": {}, "items": {}}, {"metadata": {"resourceVersion": "7"}}]
)
async def test_an_answer_that_is_no_list_is_malformed(
    fake: FakeApiServer, client: Client, body: dict[str, Any]
) -> None:
    fake.faults.append(Fault("GET", PATH, 200, body))
    with pytest.raises(MalformedAnswerError):
        await client.list_page(Selection(PODS), limit=9)


async def test_a_null_list_is_empty(fake: FakeApiServer, client: Client) -> None:
    body = {"metadata": {"resourceVersion": "9"}, "items": None}
    fake.faults.append(Fault("GET", PATH, 200, body))
    assert list((await client.list_page(Selection(PODS), limit=9)).items) == []


@pytest.mark.parametrize("body", ["", "{", "[]", "hello"])
async def test_a_success_that_is_no_object_is_malformed(
    fake: FakeApiServer, client: Client, body: str
) -> None:
    fake.faults.append(Fault("GET", "/version", 200, body))
    with pytest.raises(MalformedAnswerError):
        await client.server_version()


async def test_a_conditional_patch_changes_the_object(fake: FakeApiServer, client: Client) -> None:
    stored = fake.put(PATH, pod())
    version = {"op": "replace", "path": "/metadata/resourceVersion"}
    label = {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}
    await client.patch_json(
        POD, [{**version, "value": stored["metadata"]["resourceVersion"]}, label]
    )
    changed = fake.find(PATH, "a", "team")
    assert changed is not None
    assert changed["metadata"]["labels"] == {"x": "y"}


async def test_a_stale_patch_is_a_conflict(fake: FakeApiServer, client: Client) -> None:
    fake.put(PATH, pod())
    fake.put(PATH, pod(labels={"x": "y"}))
    stale = {"op": "replace", "path": "/metadata/resourceVersion", "value": "101"}
    with pytest.raises(ConflictError):
        await client.patch_json(POD, [stale])


async def test_a_stale_test_is_only_invalid(fake: FakeApiServer, client: Client) -> None:
    fake.put(PATH, pod())
    with pytest.raises(InvalidError):
        await client.patch_json(POD, [{"op": "test", "path": "/metadata/name", "value": "b"}])


async def test_objects_are_created_and_deleted(fake: FakeApiServer, client: Client) -> None:
    pods = Target(PODS, namespace="team")
    created: Any = await client.create(pods, pod())
    with pytest.raises(AlreadyExistsError):
        await client.create(pods, pod())
    with pytest.raises(ConflictError):
        await client.delete(POD, uid="another")
    await client.delete(POD, uid=created["metadata"]["uid"])
    assert fake.find(PATH, "a", "team") is None


async def test_an_update_of_a_stale_version_is_a_conflict(
    fake: FakeApiServer, client: Client
) -> None:
    stored = fake.put(PATH, pod())
    changed: Any = await client.update(POD, {**stored, "spec": {"nodeName": "n"}})
    assert changed["spec"] == {"nodeName": "n"}
    with pytest.raises(ConflictError):
        await client.update(POD, stored)


async def test_a_delete_names_uid_version_and_grace(fake: FakeApiServer, client: Client) -> None:
    old, new = fake.put(PATH, pod()), fake.put(PATH, pod(labels={"x": "y"}))
    uid, version = (new["metadata"][field] for field in ("uid", "resourceVersion"))
    with pytest.raises(ConflictError):
        await client.delete(POD, uid=uid, version=old["metadata"]["resourceVersion"])
    await client.delete(POD, uid=uid, version=version, grace_seconds=0)
    assert fake.find(PATH, "a", "team") is None


async def test_an_eviction_names_the_pod_that_was_decided_on(
    fake: FakeApiServer, client: Client
) -> None:
    metadata = fake.put(PATH, pod())["metadata"]
    named = {"uid": metadata["uid"], "version": metadata["resourceVersion"]}
    for other in ({"uid": "another"}, {"version": "1"}):
        with pytest.raises(ConflictError):
            await client.evict(POD, **{**named, **other})
    await client.evict(POD, **named, dry_run=True)
    assert fake.find(PATH, "a", "team")
    await client.evict(POD, **named, grace_seconds=7)
    assert fake.find(PATH, "a", "team") is None
    assert fake.evictions[-1] == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": "team"},
        "deleteOptions": {
            "gracePeriodSeconds": 7,
            "preconditions": {
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        },
    }


async def test_what_a_budget_forbids_is_told_from_a_throttled_server(
    fake: FakeApiServer, client: Client
) -> None:
    fake.put(PATH, pod())
    path = f"{POD.path}/eviction"
    causes = [{"reason": "DisruptionBudget", "message": "the budget a needs 1 healthy pods"}]
    status = {"kind": "Status", "reason": "TooManyRequests", "details": {"causes": causes}}
    fake.faults += [Fault("POST", path, 429, status), Fault("POST", path, 429, "slow")]
    with pytest.raises(BudgetError):
        await client.evict(POD, uid="u", version="1")
    with pytest.raises(TooManyRequestsError) as caught:
        await client.evict(POD, uid="u", version="1")
    assert not isinstance(caught.value, BudgetError)


async def test_a_dry_run_creates_nothing(fake: FakeApiServer, client: Client) -> None:
    await client.create(Target(PODS, namespace="team"), pod(), dry_run=True)
    assert fake.find(PATH, "a", "team") is None


async def test_the_server_is_asked_what_it_is_and_serves(
    fake: FakeApiServer, client: Client
) -> None:
    fake.put(PATH, pod())
    assert await client.server_version() == "v1.37.2"
    assert await client.serves(PODS)
    assert not await client.serves(NODES)
    assert not await client.serves(replace(PODS, version="v2"))


async def test_a_watch_brings_what_happened_since(fake: FakeApiServer, client: Client) -> None:
    fake.put(PATH, pod("a"))
    start = str(fake.version)
    fake.put(PATH, pod("b"))
    fake.put(PATH, pod("b", labels={"x": "y"}))
    fake.remove(PATH, "a", "team")
    async with client.watch(Selection(PODS), start, seconds=1, silence_seconds=5) as stream:
        kinds = [event.type async for event in stream]
    assert kinds == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED, EventType.BOOKMARK]
    assert fake.seen[-1].query["allowWatchBookmarks"] == "true"
    assert fake.seen[-1].query["resourceVersion"] == start


async def test_a_watch_from_a_forgotten_version_is_gone(
    fake: FakeApiServer, client: Client
) -> None:
    fake.compact()
    with pytest.raises(GoneError):
        async with client.watch(Selection(PODS), "5", seconds=9, silence_seconds=9) as stream:
            [event async for event in stream]


async def test_a_refused_watch_is_an_error_at_once(fake: FakeApiServer, client: Client) -> None:
    fake.faults.append(Fault("GET", PATH, 410, {"kind": "Status", "reason": "Gone"}))
    with pytest.raises(GoneError):
        async with client.watch(Selection(PODS), "100", seconds=9, silence_seconds=9):
            pytest.fail("entered")


async def test_a_silent_watch_is_noticed(fake: FakeApiServer, client: Client) -> None:
    fake.is_silent = True
    with pytest.raises(SilenceError, match=r"the watch of pods was silent for 0\.2 s"):
        async with client.watch(Selection(PODS), "100", seconds=60, silence_seconds=0.2) as stream:
            [event async for event in stream]


async def test_a_torn_watch_is_an_error_and_what_came_before_is_kept(
    fake: FakeApiServer, client: Client
) -> None:
    fake.put(PATH, pod("a"))
    found = []

    async def read() -> None:
        async with client.watch(Selection(PODS), "100", seconds=60, silence_seconds=9) as stream:
            async for event in stream:
                found.append(event)
                await fake.send(PATH, b'{"type":"ADDED","object":{"metad')
                fake.cut()

    with pytest.raises(UnavailableError):
        await read()
    assert len(found) == 1


async def test_an_event_of_many_megabytes_arrives(fake: FakeApiServer, client: Client) -> None:
    fake.put(PATH, pod(annotations={"big": "x" * 9_000_000}))
    async with client.watch(Selection(PODS), "100", seconds=60, silence_seconds=9) as stream:
        item: Any = (await anext(stream)).object
    assert len(item["metadata"]["annotations"]["big"]) == 9_000_000


async def test_an_unknown_event_is_passed_over(fake: FakeApiServer, client: Client) -> None:
    async with client.watch(Selection(PODS), "100", seconds=60, silence_seconds=9) as stream:
        await fake.wait_watches()
        await fake.send(PATH, b'{"type":"RENAMED","object":{"metadata":{}}}\n')
        fake.put(PATH, pod())
        assert (await anext(stream)).type is EventType.ADDED


async def test_the_wish_to_slow_down_is_told(fake: FakeApiServer, client: Client) -> None:
    fake.faults.append(Fault("GET", "/version", 429, "slow", {"Retry-After": "3"}))
    with pytest.raises(TooManyRequestsError) as caught:
        await client.server_version()
    assert caught.value.retry_after_seconds == 3.0


async def test_every_call_names_whom_it_acts_as(fake: FakeApiServer) -> None:
    acting = Impersonation("admin", ("system:masters", "sluice.dev:break-glass"))
    settings = ClientSettings(impersonation=acting)
    fake.put(PATH, pod())
    async with Client(FixedAccess(Access(fake.url)), settings) as client:
        await client.get(POD)
        await client.patch_json(POD, [{"op": "add", "path": "/spec", "value": {}}])
    for seen in fake.seen:
        assert seen.headers["Impersonate-User"] == "admin"
        assert seen.headers.getall("Impersonate-Group") == list(acting.groups)
    assert fake.seen[1].headers["Content-Type"] == "application/json-patch+json"


async def test_a_merge_patch_may_be_a_dry_run(fake: FakeApiServer, client: Client) -> None:
    fake.faults.append(Fault("PATCH", "/api/v1/namespaces/team/pods/a", 200, {}))
    await client.patch_merge(POD, {"metadata": {"labels": {"a": "b"}}}, dry_run=True)
    (seen,) = fake.seen
    assert seen.query == {"dryRun": "All"}


async def test_a_redirect_is_not_followed(fake: FakeApiServer, client: Client) -> None:
    fake.faults.append(Fault("GET", "/version", 302, "", {"Location": f"{fake.url}/elsewhere"}))
    with pytest.raises(ApiError, match="302"):
        await client.server_version()
    assert fake.count("GET", "/elsewhere") == 0


async def test_no_server_is_unavailable_and_nothing_has_happened() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        source = FixedAccess(Access(f"http://127.0.0.1:{taken.getsockname()[1]}"))
        async with Client(source) as client:
            with pytest.raises(UnavailableError) as caught:
                await client.patch_json(POD, [])
    assert not caught.value.may_have_happened


async def test_a_call_has_a_deadline_and_a_write_may_have_happened(fake: FakeApiServer) -> None:
    fake.hangs = True
    settings = ClientSettings(call_seconds=0.1)
    async with Client(FixedAccess(Access(fake.url)), settings) as client:
        with pytest.raises(TimedOutError) as read:
            await client.get(POD)
        with pytest.raises(TimedOutError) as write:
            await client.patch_json(POD, [])
    assert (read.value.may_have_happened, write.value.may_have_happened) == (False, True)


async def test_a_closed_client_says_so(fake: FakeApiServer) -> None:
    client = Client(FixedAccess(Access(fake.url)))
    with pytest.raises(UnavailableError, match="not open"):
        await client.server_version()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_token_is_read_again_every_minute(fake: FakeApiServer) -> None:
    source, clock = FixedAccess(Access(fake.url, authorization="Bearer one")), Clock()
    async with Client(source, clock=clock) as client:
        await client.server_version()
        source.access = Access(fake.url, authorization="Bearer two")
        clock.now = 59.0
        await client.server_version()
        clock.now = 61.0
        await asyncio.gather(*(client.server_version() for _ in range(3)))
    sent = [seen.headers["Authorization"] for seen in fake.seen]
    assert sent == ["Bearer one", "Bearer one", *["Bearer two"] * 3]
    assert source.loads == [False, False]


async def test_a_refused_token_is_read_again_at_once_and_once_for_all(fake: FakeApiServer) -> None:
    source = FixedAccess(Access(fake.url, authorization="Bearer one"))
    async with Client(source) as client:
        fake.tokens = {"Bearer two"}
        source.access = Access(fake.url, authorization="Bearer two")
        await asyncio.gather(*(client.server_version() for _ in range(5)))
    assert source.loads == [False, True]


async def test_a_token_that_stays_refused_is_an_error(fake: FakeApiServer) -> None:
    fake.tokens = {"Bearer other"}
    async with Client(FixedAccess(Access(fake.url, authorization="Bearer one"))) as client:
        with pytest.raises(UnauthorizedError):
            await client.server_version()
    assert fake.count("GET", "/version") == 2


async def test_credentials_that_cannot_be_read_again_are_kept(fake: FakeApiServer) -> None:
    class Failing(FixedAccess):
        async def load(self, *, renew: bool = False) -> Access:
            if self.loads:
                raise AccessError("the file is gone")
            return await super().load(renew=renew)

    clock = Clock()
    async with Client(Failing(Access(fake.url)), clock=clock) as client:
        clock.now = 100.0
        assert await client.server_version() == "v1.37.2"


async def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(Access("https://x", authorization="Bearer secret"))
