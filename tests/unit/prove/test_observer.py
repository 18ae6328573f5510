# SPDX-License-Identifier: Apache-2.0
"""The observer finds every breach that is put into a stream, and none where there is none."""

import copy
import json
from fractions import Fraction

import pytest

from tests.prove.findings import Fact
from tests.prove.observer import Observer
from tests.prove.seen import CHARGE
from tests.unit.prove.streams import SHARED, Stream, pod, world


@pytest.fixture
def stream() -> Stream:
    return Stream(world(ceiling=1000))


def test_releases_up_to_the_ceiling_are_no_breach(stream: Stream) -> None:
    for number in range(4):
        stream.release(stream.add(pod(f"p{number}")))
    assert stream.kinds() == []
    assert stream.observer.used["a"] == 1000
    assert len(stream.observer.releases) == 4


def test_the_release_past_the_ceiling_is_a_breach(stream: Stream) -> None:
    for number in range(5):
        stream.release(stream.add(pod(f"p{number}")))
    assert stream.kinds() == ["Ceiling"]
    assert "a/p4: released, and now a uses 1250 of 1000" in stream.observer.breaches[0].text


def test_other_tenants_have_ceilings_of_their_own(stream: Stream) -> None:
    for number in range(8):
        stream.release(stream.add(pod(f"p{number}", "ab"[number % 2])))
    assert stream.kinds() == []


def test_ended_pods_make_room(stream: Stream) -> None:
    for number, phase in enumerate(["Succeeded", "Failed"] * 4):
        stream.phase(stream.release(stream.add(pod(f"p{number}", shares=4))), phase)
    assert stream.kinds() == []
    assert stream.observer.used["a"] == 0


def test_gone_pods_make_room(stream: Stream) -> None:
    for number in range(3):
        stream.delete(stream.release(stream.add(pod(f"p{number}", shares=4))))
    assert stream.kinds() == []


def test_a_pod_that_takes_a_year_to_end_goes_on_counting(stream: Stream) -> None:
    stream.delete(stream.release(stream.add(pod("old", shares=4))), gone=False)
    stream.release(stream.add(pod("new")))
    assert stream.kinds() == ["Ceiling"]


def test_a_share_of_seven_is_counted_exactly() -> None:
    sevenths = world(ceiling=1000)
    stream = Stream(type(sevenths)(sevenths.tenants, {SHARED: Fraction(1000, 7)}, {}))
    for number in range(8):
        item = stream.add(pod(f"p{number}"))
        stream.release(item, {"tenant": "a", "milli": 143})
    assert stream.kinds() == ["Ceiling"]


def test_a_gate_taken_off_twice_is_a_breach(stream: Stream) -> None:
    item = stream.release(stream.add(pod("p")))
    item["spec"]["schedulingGates"] = [{"name": "sluice.dev/quota"}]
    stream.send("MODIFIED", item)
    stream.release(item)
    assert stream.kinds() == ["Twice"]


def test_another_charge_after_the_release_is_a_breach(stream: Stream) -> None:
    item = stream.release(stream.add(pod("p")))
    item["metadata"]["annotations"][CHARGE] = json.dumps({"tenant": "a", "milli": 500})
    stream.send("MODIFIED", item)
    assert stream.kinds() == ["Twice"]


@pytest.mark.parametrize(
    ("charge", "kind"),
    [
        ({"nothing": 0}, "Uncharged"),
        ({"tenant": "b", "milli": 250}, "Mischarged"),
        ({"tenant": "a", "milli": 249}, "Mischarged"),
    ],
)
def test_a_wrong_charge_is_a_breach(stream: Stream, charge: dict[str, object], kind: str) -> None:
    stream.release(stream.add(pod("p")), charge)
    assert stream.kinds() == [kind]


def test_a_pod_made_without_the_gate_is_a_breach(stream: Stream) -> None:
    stream.add(pod("p", schedulingGates=[]))
    assert stream.kinds() == ["Bypass"]


def test_pods_without_gpus_and_pods_of_no_tenant_are_nothing(stream: Stream) -> None:
    stream.add(pod("plain", shares=0, schedulingGates=[]))
    stream.add(pod("other", "elsewhere", schedulingGates=[]))
    assert stream.kinds() == []


def test_the_pods_of_the_first_list_count_and_are_no_breach() -> None:
    fresh = Observer(world())
    fresh.listed([pod("p", schedulingGates=[], shares=4)], 1, 0.0)
    assert fresh.findings == []
    assert fresh.used["a"] == 1000


def test_a_pod_of_the_same_name_is_another_pod(stream: Stream) -> None:
    stream.delete(stream.release(stream.add(pod("p", uid="1"))))
    stream.release(stream.add(pod("p", uid="2")))
    assert stream.kinds() == []
    assert len(stream.observer.releases) == 2


def test_events_that_come_again_change_nothing(stream: Stream) -> None:
    item = stream.release(stream.add(pod("p", shares=4)))
    stream.observer.changed("MODIFIED", copy.deepcopy(item), stream.now)
    gone = stream.delete(item)
    stream.observer.changed("DELETED", gone, stream.now)
    stream.observer.changed("MODIFIED", item, stream.now)
    assert stream.kinds() == []
    assert stream.observer.used["a"] == 0
    assert stream.observer.pods == {}


def test_a_lowered_ceiling_is_told_and_a_release_after_it_is_a_breach(stream: Stream) -> None:
    stream.release(stream.add(pod("p", shares=4)))
    stream.observer.follow(world(ceiling=500))
    assert stream.kinds() == ["Over"]
    stream.release(stream.add(pod("q")))
    assert stream.kinds() == ["Over", "Ceiling"]


def test_a_breach_during_a_gap_is_found(stream: Stream) -> None:
    items = [stream.add(pod(f"p{number}", shares=3)) for number in range(2)]
    for item in items:
        item["spec"]["schedulingGates"] = []
        item["metadata"]["annotations"][CHARGE] = '{"tenant": "a", "milli": 750}'
        item["metadata"]["resourceVersion"] = str(stream.next())
    stream.observer.listed(items, stream.next(), stream.now)
    assert stream.kinds() == ["Gap", "Ceiling"]


def test_what_a_gap_may_have_ordered_rightly_is_no_breach(stream: Stream) -> None:
    old = stream.release(stream.add(pod("old", shares=4)))
    new = stream.add(pod("new", shares=4))
    new["spec"]["schedulingGates"] = []
    new["metadata"]["annotations"][CHARGE] = '{"tenant": "a", "milli": 1000}'
    new["metadata"]["resourceVersion"] = str(stream.next())
    old["status"]["phase"] = "Succeeded"
    old["metadata"]["resourceVersion"] = str(stream.next())
    stream.observer.listed([new, old], stream.next(), stream.now)
    assert stream.kinds() == ["Gap"]


def test_what_a_gap_swallowed_is_gone(stream: Stream) -> None:
    stream.release(stream.add(pod("p", shares=4)))
    stream.observer.listed([], stream.next(), stream.now)
    assert stream.observer.used["a"] == 0
    assert list(stream.observer.gone) == ["p"]


def test_a_list_that_agrees_has_no_differences(stream: Stream) -> None:
    items = [stream.release(stream.add(pod("p"))), stream.add(pod("q"))]
    assert stream.observer.differences(items) == []


def test_a_list_that_disagrees_is_told_of(stream: Stream) -> None:
    kept = stream.add(pod("kept"))
    stream.add(pod("lost"))
    other = copy.deepcopy(kept)
    other["spec"]["schedulingGates"] = []
    told = stream.observer.differences([other, pod("new")])
    assert sorted(told) == [
        "a uses 250.0, counted were 0.0",
        "a/kept differs",
        "a/lost is gone",
        "a/new is new",
    ]


def test_a_release_before_an_older_pod_alike_is_told(stream: Stream) -> None:
    stream.add(pod("old", created="2026-01-01T00:00:00Z"))
    stream.add(pod("elsewhere", "b", created="2026-01-01T00:00:00Z"))
    stream.add(pod("large", shares=2, created="2026-01-01T00:00:00Z"))
    stream.release(stream.add(pod("new", created="2026-01-01T00:00:01Z")))
    assert [f.text for f in stream.observer.facts(Fact.OVERTAKEN)] == [
        "a/new: released before 1 older pods alike"
    ]


def test_an_eviction_is_told_once_with_its_notice(stream: Stream) -> None:
    item = stream.add(pod("p", annotations={"state.sluice.dev/notice": "for b"}))
    stream.delete(stream.release(item), by="EvictionByEvictionAPI", gone=False)
    stream.delete(item, by="EvictionByEvictionAPI")
    assert [f.text for f in stream.observer.facts(Fact.EVICTED)] == [
        "a/p: EvictionByEvictionAPI: for b"
    ]


def test_sidecars_and_init_containers_count_as_kubernetes_counts_them() -> None:
    def asks(count: int, **more: str) -> dict[str, object]:
        return {"name": "c", "resources": {"limits": {SHARED: str(count)}}, **more}

    item = pod("p", shares=1)
    item["spec"]["initContainers"] = [asks(2, restartPolicy="Always"), asks(4), asks(1)]
    assert world().devices_of(item) == {SHARED: 6}
    item["spec"]["initContainers"] = [asks(4), asks(5, restartPolicy="Always")]
    assert world().devices_of(item) == {SHARED: 6}
