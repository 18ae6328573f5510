# SPDX-License-Identifier: Apache-2.0
"""The reflector against a fake API server over HTTP, fault by fault."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler.kube.backoff import Backoff
from reconciler.kube.client import Client
from reconciler.kube.reflector import Reflector, ReflectorSettings, Runtime
from reconciler.kube.resources import PODS, Selection
from reconciler.kube.store import Change, Key
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.running import running
from tests.support.waiting import until

PATH = "/api/v1/pods"
GONE = {"kind": "Status", "reason": "Expired", "code": 410, "message": "too old"}


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", **metadata}}


def names(item: Mapping[str, Any]) -> str | None:
    """A view: uid and labels, so that a change of labels is one."""
    metadata = item["metadata"]
    return f"{metadata['uid']} {json.dumps(metadata.get('labels', {}))}"


@dataclass
class Time:
    """A clock that a test moves, and sleeps that it counts and does not wait for."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)
    drawn: list[tuple[float, float]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def uniform(self, low: float, high: float) -> float:
        self.drawn.append((low, high))
        return high

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    def runtime(self) -> Runtime:
        return Runtime(self.clock, self.uniform, self.sleep)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def reflector(client: Client, time: Time) -> Reflector[str]:
    return make(client, time)


def make(client: Client, time: Time, **settings: Any) -> Reflector[str]:
    return Reflector(client, Selection(PODS), names, ReflectorSettings(**settings), time.runtime())


def record(reflector: Reflector[str]) -> list[Change[str]]:
    changes: list[Change[str]] = []
    reflector.subscribe(changes.append)
    return changes


def key(name: str) -> Key:
    return Key("team", name)


async def test_a_list_and_then_events_fill_the_store(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    fake.put(PATH, pod("a", uid="1"))
    changes = record(reflector)
    assert not reflector.synced.is_set()
    async with running(reflector.run()):
        await reflector.synced.wait()
        assert changes == [Change(key("a"), None, "1 {}")]
        fake.put(PATH, pod("b", uid="2"))
        fake.put(PATH, pod("a", uid="1", labels={"x": "y"}))
        fake.remove(PATH, "b", "team")
        await until(lambda: len(changes) == 4)
    assert changes[1:] == [
        Change(key("b"), None, "2 {}"),
        Change(key("a"), "1 {}", '1 {"x": "y"}'),
        Change(key("b"), "2 {}", None),
    ]
    assert (reflector.get(key("a")), len(reflector)) == ('1 {"x": "y"}', 1)


async def test_the_store_is_already_new_when_a_subscriber_is_called(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    seen: list[str | None] = []
    reflector.subscribe(lambda change: seen.append(reflector.get(change.key)))
    fake.put(PATH, pod("a", uid="1"))
    async with running(reflector.run()):
        await until(lambda: seen == ["1 {}"])


async def test_a_long_list_is_read_in_pages_and_published_whole(
    fake: FakeApiServer, client: Client, time: Time
) -> None:
    for number in range(1201):
        fake.put(PATH, pod(f"p{number}"))
    reflector = make(client, time)
    sizes: list[int] = []
    reflector.subscribe(lambda _: sizes.append(len(reflector)))
    async with running(reflector.run()):
        await reflector.synced.wait()
    assert fake.count("GET", PATH) == 3
    assert set(sizes) == {1201}


async def test_every_list_is_consistent_and_every_watch_is_jittered_and_has_bookmarks(
    fake: FakeApiServer, reflector: Reflector[str], time: Time
) -> None:
    async with running(reflector.run()):
        await fake.wait_watches()
    listing, watch = fake.seen
    assert "resourceVersion" not in listing.query
    assert (watch.query["resourceVersion"], watch.query["allowWatchBookmarks"]) == ("100", "true")
    assert time.drawn == [(300.0, 600.0)]
    assert watch.query["timeoutSeconds"] == "600"


async def test_a_cut_connection_goes_on_where_it_was_without_a_new_list(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    changes = record(reflector)
    async with running(reflector.run()):
        for number in range(5):
            await fake.wait_watches()
            fake.put(PATH, pod(f"p{number}"))
            fake.cut()
            fake.put(PATH, pod(f"q{number}"))
        await until(lambda: len(changes) == 10)
    assert reflector.counters.lists == 1


@pytest.mark.parametrize("how", ["status", "event"])
async def test_after_a_410_a_new_list_tells_what_was_missed(
    fake: FakeApiServer, reflector: Reflector[str], how: str
) -> None:
    fake.put(PATH, pod("a", uid="1"))
    fake.put(PATH, pod("b", uid="2"))
    changes = record(reflector)
    async with running(reflector.run()):
        await fake.wait_watches()
        fake.remove(PATH, "b", "team")
        fake.put(PATH, pod("c", uid="3"))
        fake.compact()
        if how == "status":
            fake.faults.append(Fault("GET", PATH, 410, GONE, lists=False))
        fake.cut()
        await until(lambda: reflector.counters.lists == 2)
        fake.put(PATH, pod("d", uid="4"))
        await until(lambda: key("d") in {change.key for change in changes})
    assert changes[2:] == [
        Change(key("b"), "2 {}", None),
        Change(key("c"), None, "3 {}"),
        Change(key("d"), None, "4 {}"),
    ]


async def test_a_410_in_an_open_stream_is_no_object(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    """The stream of a real server, as other clients have stumbled over it."""
    fake.put(PATH, pod("c79-a", uid="uid-a"))
    fake.put(PATH, pod("c79-b", uid="uid-b"))
    changes = record(reflector)
    async with running(reflector.run()):
        await fake.wait_watches()
        fake.is_silent = True
        fake.remove(PATH, "c79-b", "team")
        await fake.send(PATH, line("BOOKMARK", {"metadata": {"resourceVersion": "150"}}))
        await fake.send(PATH, line("ERROR", GONE))
        await until(lambda: reflector.counters.lists == 2)
    assert changes[2:] == [Change(key("c79-b"), "uid-b {}", None)]
    assert reflector.values() == ("uid-a {}",)


async def test_a_replaced_object_in_one_event_is_a_deletion_and_an_addition(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    changes = record(reflector)
    async with running(reflector.run()):
        await fake.wait_watches()
        await fake.send(PATH, line("ADDED", pod("s-0", uid="uid-1", resourceVersion="200")))
        await fake.send(PATH, line("MODIFIED", pod("s-0", uid="uid-2", resourceVersion="230")))
        await fake.send(PATH, line("DELETED", pod("s-0", uid="uid-1", resourceVersion="231")))
        await until(lambda: reflector.counters.events == 3)
    assert changes == [
        Change(key("s-0"), None, "uid-1 {}"),
        Change(key("s-0"), "uid-1 {}", None),
        Change(key("s-0"), None, "uid-2 {}"),
    ]


async def test_the_next_watch_starts_from_the_last_bookmark(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    async with running(reflector.run()):
        await fake.wait_watches()
        fake.version = 5000
        await fake.send(PATH, line("BOOKMARK", {"metadata": {"resourceVersion": "5000"}}))
        await until(lambda: reflector.counters.events == 1)
        fake.cut()
        await fake.wait_watches()
    assert fake.seen[-1].query["resourceVersion"] == "5000"


async def test_a_continue_token_that_expires_starts_the_list_over(
    fake: FakeApiServer, client: Client, time: Time
) -> None:
    for name in "abc":
        fake.put(PATH, pod(name))
    fake.faults.append(Fault("GET", PATH, 410, GONE, after=1, watches=False))
    reflector = make(client, time, page_size=2)
    changes = record(reflector)
    async with running(reflector.run()):
        await reflector.synced.wait()
    assert [change.key.name for change in changes] == ["a", "b", "c"]
    assert "continue" not in fake.seen[2].query


async def test_versions_that_went_back_are_answered_by_a_new_list(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    """Etcd was restored from a backup; a watch from beyond its end is silent, not refused."""
    fake.version = 9000
    fake.put(PATH, pod("a", uid="1"))
    changes = record(reflector)
    async with running(reflector.run()):
        await fake.wait_watches()
        fake.compact()
        fake.version = 500
        fake.put(PATH, pod("a", uid="1", labels={"x": "y"}))
        fake.cut()
        await until(lambda: len(changes) == 2)
        fake.put(PATH, pod("b", uid="2"))
        await until(lambda: len(changes) == 3)


@pytest.mark.parametrize("version", ["None", "", "0", None, 7])
async def test_a_list_without_a_version_is_not_watched_from(
    fake: FakeApiServer, reflector: Reflector[str], version: object
) -> None:
    body = {"kind": "List", "metadata": {"resourceVersion": version}, "items": []}
    fake.faults.append(Fault("GET", PATH, 200, body, watches=False))
    fake.put(PATH, pod("a", uid="1"))
    async with running(reflector.run()):
        await fake.wait_watches()
    assert [seen.query.get("resourceVersion") for seen in fake.seen] == [None, None, "101"]
    assert reflector.values() == ("1 {}",)


@pytest.mark.parametrize(
    "sent",
    [
        b'{"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":"None"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"x"}}}\n',
        b'{"type":"BOOKMARK","object":{"metadata":{}}}\n',
        b'{"type":"ADDED","obj\n',
    ],
)
async def test_an_event_that_cannot_be_understood_leads_to_a_new_list(
    fake: FakeApiServer, reflector: Reflector[str], sent: bytes
) -> None:
    async with running(reflector.run()):
        await fake.wait_watches()
        await fake.send(PATH, sent)
        await until(lambda: reflector.counters.lists == 2)


async def test_a_stream_of_such_events_does_not_lead_to_a_stream_of_lists(
    fake: FakeApiServer, client: Client, time: Time
) -> None:
    """Good events in between must not reset the back-off, since lists are dear."""
    reflector = make(client, time, backoff=Backoff(1.0, 60.0))
    async with running(reflector.run()):
        for lists in range(2, 6):
            await fake.wait_watches()
            fake.put(PATH, pod(f"p{lists}"))
            await until(lambda lists=lists: len(reflector) == lists - 1)  # type: ignore[misc]
            await fake.send(PATH, b"{}\n")
            await until(lambda lists=lists: reflector.counters.lists == lists)  # type: ignore[misc]
    assert time.slept == [1.0, 2.0, 4.0, 8.0]


async def test_a_half_line_at_the_end_and_unknown_types_and_other_scripts_are_survived(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    changes = record(reflector)
    async with running(reflector.run()):
        await fake.wait_watches()
        await fake.send(PATH, line("RENAMED", pod("x", resourceVersion="900")))
        fake.put(PATH, pod("größe-名前", uid="1"))
        await until(lambda: len(changes) == 1)
        await fake.send(PATH, b'{"type":"ADDED","object":{"metadata":{"na')
        fake.cut()
        fake.put(PATH, pod("b", uid="2"))
        await until(lambda: len(changes) == 2)
    assert reflector.get(key("größe-名前")) == "1 {}"
    assert reflector.counters.lists == 1


async def test_an_event_larger_than_any_buffer_arrives(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    changes = record(reflector)
    async with running(reflector.run()):
        await fake.wait_watches()
        fake.put(PATH, pod("a", uid="1", annotations={"big": "x" * 5_000_000}))
        await until(lambda: len(changes) == 1)
    assert (reflector.counters.lists, reflector.counters.failures) == (1, 0)


async def test_a_silent_stream_is_opened_anew_and_short_ones_follow_until_something_happens(
    fake: FakeApiServer, client: Client, time: Time
) -> None:
    reflector = make(client, time, silence_seconds=0.3)
    async with running(reflector.run()):
        await fake.wait_watches()
        fake.is_silent = True
        fake.put(PATH, pod("a", uid="1"))
        await until(lambda: reflector.counters.watches == 3)
        assert len(reflector) == 0
        fake.is_silent = False
        await until(lambda: reflector.get(key("a")) == "1 {}")
        fake.cut()
        await until(lambda: reflector.counters.watches >= 4)
        await fake.wait_watches()
    watches = [seen for seen in fake.seen if "watch" in seen.query]
    assert [w.query["timeoutSeconds"] for w in watches[:3]] == ["600", "1", "1"]
    assert time.drawn[1] == pytest.approx((0.18, 0.27))
    assert watches[-1].query["timeoutSeconds"] == "600"
    assert reflector.counters.lists == 1


async def test_failures_are_waited_out_with_growing_delays_up_to_the_cap(
    fake: FakeApiServer, client: Client, time: Time
) -> None:
    fake.faults.append(Fault("GET", PATH, 503, "down", times=6))
    reflector = make(client, time, backoff=Backoff(1.0, 10.0))
    async with running(reflector.run()):
        await reflector.synced.wait()
    assert time.slept == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert time.drawn[:3] == [(0.5, 1.0), (1.0, 2.0), (2.0, 4.0)]


async def test_the_servers_wish_to_wait_is_respected(
    fake: FakeApiServer, reflector: Reflector[str], time: Time
) -> None:
    fake.faults.append(Fault("GET", PATH, 429, "slow", {"Retry-After": "17"}))
    async with running(reflector.run()):
        await reflector.synced.wait()
    assert time.slept == [17.0]


async def test_an_event_resets_the_delay(fake: FakeApiServer, client: Client, time: Time) -> None:
    reflector = make(client, time, backoff=Backoff(1.0, 10.0))
    async with running(reflector.run()):
        await fake.wait_watches()
        fake.faults.append(Fault("GET", PATH, 503, "down", times=2, lists=False))
        fake.cut()
        await until(lambda: len(time.slept) == 3)
        await fake.wait_watches()
        fake.put(PATH, pod("a"))
        await until(lambda: len(reflector) == 1)
        fake.cut()
        await until(lambda: len(time.slept) == 4)
    assert time.slept == [1.0, 2.0, 4.0, 1.0]


async def test_a_watch_that_always_ends_at_once_is_not_a_tight_loop(
    fake: FakeApiServer, reflector: Reflector[str], time: Time
) -> None:
    fake.faults.append(Fault("GET", PATH, 200, "", times=5, lists=False))
    async with running(reflector.run()):
        await fake.wait_watches()
    assert time.slept == [0.5, 1.0, 2.0, 4.0, 8.0]


async def test_a_watch_that_is_forbidden_for_a_while_goes_on_without_a_new_list(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    fake.faults.append(Fault("GET", PATH, 403, "no", times=2, lists=False))
    async with running(reflector.run()):
        await fake.wait_watches()
    assert reflector.counters.lists == 1


async def test_a_resource_that_is_not_served_yet_is_found_once_it_is(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    fake.faults.append(Fault("GET", PATH, 404, "404 page not found", times=3))
    async with running(reflector.run()):
        await reflector.synced.wait()


async def test_the_staleness_clock_runs_from_the_last_word_of_the_server(
    fake: FakeApiServer, reflector: Reflector[str], time: Time
) -> None:
    assert reflector.seconds_since_contact(time.now + 5) == 5
    time.now = 2000.0
    async with running(reflector.run()):
        await fake.wait_watches()
        await until(lambda: reflector.counters.watches == 1)
        assert reflector.seconds_since_contact(2007.0) == 7
        fault = Fault("GET", PATH, 503, "down", times=1_000_000)
        fake.faults.append(fault)
        time.now = 2050.0
        fake.cut()
        await until(lambda: len(time.slept) >= 2)
        assert reflector.seconds_since_contact(2050.0) == 50
        fault.times = 0
        await until(lambda: reflector.counters.watches == 2)
        assert reflector.seconds_since_contact(2050.0) == 0


async def test_a_complete_list_is_contact_even_where_no_watch_follows(
    fake: FakeApiServer, reflector: Reflector[str], time: Time
) -> None:
    fake.faults.append(Fault("GET", PATH, 403, "no", times=1_000_000, lists=False))
    time.now += 100
    async with running(reflector.run()):
        await reflector.synced.wait()
    assert reflector.seconds_since_contact(time.now) == 0


async def test_an_unfinished_list_is_no_contact_since_the_picture_is_still_old(
    fake: FakeApiServer, client: Client, time: Time
) -> None:
    for name in "abc":
        fake.put(PATH, pod(name))
    fake.faults.append(Fault("GET", PATH, 503, "down", after=1, times=1_000_000, watches=False))
    reflector = make(client, time, page_size=2)
    async with running(reflector.run()):
        time.now += 100
        await until(lambda: len(time.slept) > 2)
    assert reflector.seconds_since_contact(time.now) == 100


class FaultOfOurs(Exception):  # noqa: N818 - stands for any bug
    pass


async def test_a_view_that_fails_ends_the_run_with_its_error(
    fake: FakeApiServer, client: Client
) -> None:
    def view(item: Mapping[str, object]) -> str:
        raise FaultOfOurs

    fake.put(PATH, pod("a"))
    with pytest.raises(FaultOfOurs):
        await Reflector(client, Selection(PODS), view).run()


async def test_a_subscriber_that_fails_ends_the_run_with_its_error(
    fake: FakeApiServer, reflector: Reflector[str]
) -> None:
    def subscriber(change: Change[str]) -> None:
        raise FaultOfOurs

    reflector.subscribe(subscriber)
    fake.put(PATH, pod("a"))
    with pytest.raises(FaultOfOurs):
        await reflector.run()


def line(kind: str, item: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"
