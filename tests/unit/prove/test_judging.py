# SPDX-License-Identifier: Apache-2.0
"""Lost, stuck, untrue and undeclared: each is found where it is put, and nowhere else."""

from typing import Any

import pytest

from tests.prove.ending import Created, Ending, fault_of_waiting, group_refusals, judge_ending
from tests.prove.leases import LeaseHistory, undeclared
from tests.prove.seen import GANG, GANG_SIZE, REASON
from tests.prove.standstill import Standstill
from tests.prove.world import Json
from tests.unit.prove.streams import Stream, pod, world

UID = "00000000-0000-0000-0000-00000000000"


@pytest.fixture
def stream() -> Stream:
    return Stream(world(ceiling=1000, guarantee=500))


def ending(stream: Stream, created: Created) -> Ending:
    return judge_ending(stream.observer, created)


def test_every_pod_ends_in_one_way(stream: Stream) -> None:
    stream.release(stream.add(pod("released", shares=4)))
    stream.add(pod("waiting", annotations={REASON: "Ceiling: needs 0.25 GPUs"}))
    stream.delete(stream.add(pod("deleted")))
    made = {name: f"a/{name}" for name in ("released", "waiting", "deleted")}
    created = Created(made, {"a/no": "sluice: [OverCeiling] asks 9"}, {"deleted"})
    assert ending(stream, created) == Ending(1, 1, 1, 1, ())


def test_a_pod_that_never_showed_is_lost(stream: Stream) -> None:
    assert ending(stream, Created({"x": "a/x"})).lost == ("a/x: made, and never seen",)


def test_a_waiting_pod_that_vanishes_is_lost(stream: Stream) -> None:
    stream.delete(stream.add(pod("p")))
    assert len(ending(stream, Created({"p": "a/p"})).lost) == 1


def test_a_running_pod_that_nobody_deleted_is_lost_when_it_vanishes(stream: Stream) -> None:
    stream.delete(stream.release(stream.add(pod("p"))))
    assert ending(stream, Created({"p": "a/p"})).lost == (
        "a/p: ended while it ran, by nobody known",
    )
    assert ending(stream, Created({"p": "a/p"}, {}, {"p"})).lost == ()


def test_an_evicted_pod_is_not_lost(stream: Stream) -> None:
    stream.delete(stream.release(stream.add(pod("p"))), by="EvictionByEvictionAPI")
    assert ending(stream, Created({"p": "a/p"})).lost == ()


def fault(stream: Stream, reason: str, shares: int = 1) -> str:
    annotations = {REASON: reason} if reason else {}
    stream.add(pod("waits", shares=shares, annotations=annotations))
    return fault_of_waiting(stream.observer, stream.observer.pods["waits"])


def test_no_reason_is_a_fault(stream: Stream) -> None:
    assert fault(stream, "") == "waits without a reason, though quota and room are free"


@pytest.mark.parametrize("reason", ["Next: with the next batch", "the moon is full"])
def test_a_reason_that_keeps_nobody_waiting_is_a_fault(stream: Stream, reason: str) -> None:
    assert "never true at rest" in fault(stream, reason)


def test_a_ceiling_that_is_not_reached_is_an_untrue_reason(stream: Stream) -> None:
    assert "not true" in fault(stream, "Ceiling: needs 0.25 GPUs")


@pytest.mark.parametrize("reason", ["Ceiling: x", "NothingToBorrow: x", "NoNodeFits: x"])
def test_what_the_observer_finds_so_is_true(stream: Stream, reason: str) -> None:
    for number, namespace in enumerate("abab"):
        stream.release(stream.add(pod(f"p{number}", namespace, shares=2)))
    stream.observer.follow(world(ceiling=1000, guarantee=500, shares=8))
    assert fault(stream, reason) == ""


def test_only_a_gang_that_is_not_whole_may_say_so(stream: Stream) -> None:
    said = {REASON: "GangIncomplete: 1 of 2 pods are there"}
    first = pod("g0", labels={GANG: "g"}, annotations={GANG_SIZE: "2", **said})
    stream.add(first)
    assert fault_of_waiting(stream.observer, stream.observer.pods["g0"]) == ""
    stream.add(gang("g1", 2))
    assert "not true" in fault_of_waiting(stream.observer, stream.observer.pods["g0"])


def test_a_gang_of_which_some_were_released_waits_with_no_reason_that_is_true(
    stream: Stream,
) -> None:
    stream.release(stream.add(gang("g0", 2)))
    said = {REASON: "Ceiling: x"}
    stream.add(pod("g1", labels={GANG: "g"}, annotations={GANG_SIZE: "2", **said}))
    found = fault_of_waiting(stream.observer, stream.observer.pods["g1"])
    assert found == "waits while 1 of its gang run"


def test_only_for_who_waits_is_anything_kept(stream: Stream) -> None:
    assert "not true" in fault(stream, "Reserved: what is free is kept for pod a/old")
    stream.add(pod("older", created="2025-01-01T00:00:00Z"))
    assert "not true" in fault_of_waiting(stream.observer, stream.observer.pods["waits"])
    stream.add(pod("old"))
    assert fault_of_waiting(stream.observer, stream.observer.pods["waits"]) == ""


def test_what_can_never_be_taken_back_waits_for_the_guarantee(stream: Stream) -> None:
    year: dict[str, Any] = {"terminationGracePeriodSeconds": 31536000}
    stream.release(stream.add(pod("old", shares=2, **year)))
    item = pod("new", annotations={REASON: "FixedGuarantee: x"}, **year)
    stream.add(item)
    assert fault_of_waiting(stream.observer, stream.observer.pods["new"]) == ""
    assert "not true" in fault(stream, "FixedGuarantee: x")


def test_refusals_are_counted_by_their_reason() -> None:
    messages = {"a": "x: [OverCeiling] 1", "b": "x: [OverCeiling] 2", "c": "connection refused"}
    assert group_refusals(messages) == {"OverCeiling": 2, "connection refused": 1}


def stuck(stream: Stream, seconds: float = 10.0) -> Standstill:
    standstill = Standstill(stream.observer, seconds)
    for _ in range(13):
        stream.now += 1
        standstill.look(stream.now)
    return standstill


def test_a_pod_that_waits_with_quota_and_room_free_is_stuck(stream: Stream) -> None:
    stream.add(pod("p"))
    found = stuck(stream)
    assert list(found.stuck) == ["p"]
    assert found.longest_seconds > 10


def test_a_pod_that_waits_for_its_ceiling_is_not_stuck(stream: Stream) -> None:
    stream.release(stream.add(pod("p", shares=4)))
    stream.add(pod("q"))
    assert stuck(stream).stuck == {}


def test_a_pod_that_waits_for_devices_is_not_stuck() -> None:
    stream = Stream(world(shares=4))
    stream.release(stream.add(pod("p", "b", shares=4)))
    stream.add(pod("q"))
    assert stuck(stream).stuck == {}


def test_a_pod_that_waits_for_what_is_guaranteed_to_others_is_not_stuck() -> None:
    stream = Stream(world(guarantee=500, shares=4))
    stream.release(stream.add(pod("p", shares=2)))
    stream.add(pod("q"))
    assert stuck(stream).stuck == {}


def test_a_pod_with_a_gate_of_others_is_not_stuck(stream: Stream) -> None:
    stream.add(pod("p", schedulingGates=[{"name": "sluice.dev/quota"}, {"name": "other"}]))
    assert stuck(stream).stuck == {}


def gang(name: str, size: int) -> Json:
    return pod(name, labels={GANG: "g"}, annotations={GANG_SIZE: str(size)})


def test_a_gang_is_stuck_only_when_it_is_whole(stream: Stream) -> None:
    stream.add(gang("g0", 2))
    assert stuck(stream).stuck == {}
    stream.add(gang("g1", 2))
    assert sorted(stuck(stream).stuck) == ["g0", "g1"]


def test_a_tenant_that_makes_progress_is_not_stuck(stream: Stream) -> None:
    standstill = Standstill(stream.observer, 5.0)
    stream.add(pod("p"))
    for number in range(20):
        stream.delete(stream.release(stream.add(pod(f"q{number}"))))
        standstill.look(stream.now)
    assert standstill.stuck == {}


def lease(version: int, holder: str, *uids: str, term: int = 1) -> Json:
    annotations = {"state.sluice.dev/intents": f"[{list(uids)}]"}
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "leaseTransitions": term}}


def test_a_release_that_the_lease_told_of_is_declared(stream: Stream) -> None:
    history = LeaseHistory()
    item = stream.add(pod("p", uid=f"{UID}1"))
    history.take(lease(stream.next(), "one", f"{UID}1"))
    stream.release(item)
    history.take(lease(stream.next(), "one"))
    assert undeclared(history, stream.observer) == []


def test_a_release_of_a_past_leader_after_its_intent_was_settled_is_a_breach(
    stream: Stream,
) -> None:
    history = LeaseHistory()
    item = stream.add(pod("p", uid=f"{UID}1"))
    history.take(lease(stream.next(), "one", f"{UID}1"))
    history.take(lease(stream.next(), "two", f"{UID}1", term=2))
    history.take(lease(stream.next(), "two", term=2))
    stream.release(item)
    assert [str(f.kind) for f in undeclared(history, stream.observer)] == ["Undeclared"]
    assert (history.terms, history.holder) == (1, "two")


def test_a_holder_that_comes_back_after_a_crash_begins_another_term(stream: Stream) -> None:
    history = LeaseHistory()
    for term in (3, 3, 4):
        history.take(lease(stream.next(), "one", term=term))
    assert (history.term, history.terms) == (4, 1)


def test_an_eviction_that_the_lease_did_not_tell_of_is_a_breach(stream: Stream) -> None:
    history = LeaseHistory()
    history.take(lease(stream.next(), "one", f"{UID}1"))
    item = stream.release(stream.add(pod("p", uid=f"{UID}1")))
    history.take(lease(stream.next(), "one"))
    stream.delete(item, by="EvictionByEvictionAPI", gone=False)
    assert len(undeclared(history, stream.observer)) == 1


def test_what_lies_in_lost_history_is_not_judged(stream: Stream) -> None:
    history = LeaseHistory()
    item = stream.add(pod("p", uid=f"{UID}1"))
    history.take(lease(stream.next(), "one"))
    stream.release(item)
    history.take(lease(stream.next(), "one"), is_known=False)
    assert undeclared(history, stream.observer) == []
