# SPDX-License-Identifier: Apache-2.0
"""The fit check: what fits beside what is there, where it is put, and what makes way for what."""

import pytest

from policies.cluster.constraints import Constraints
from policies.cluster.fit import FitIndex, FitShape
from tests.support.builders import GPU
from tests.support.cluster import node, shape

GPUS_4 = {GPU: 4, "pods": 1}


def _index(**gpus: int) -> FitIndex:
    """Return an index of nodes with so many GPUs each."""
    index = FitIndex()
    for name, count in gpus.items():
        index.put_node(node(name, {GPU: str(count)}))
    return index


def test_an_assumed_pod_takes_what_it_asks() -> None:
    index = _index(a=8)
    before = index.free("a")
    assert index.assume("u", shape(3, requests={"cpu": "2"})) == "a"
    after = index.free("a")
    assert {name: before[name] - after.get(name, 0) for name in before} == {
        "cpu": 2000,
        "memory": 0,
        "pods": 1,
        GPU: 3,
    }


def test_nothing_is_taken_where_nothing_fits() -> None:
    index = _index(a=2)
    before = index.free("a")
    assert index.assume("u", shape(3)) is None
    assert index.free("a") == before
    assert index.node_of("u") is None
    assert index.unplaced() == ()


def test_a_pod_goes_where_the_fewest_devices_are_left_then_by_name() -> None:
    index = _index(c=4, b=4, a=8)
    assert [index.assume(str(n), shape(2)) for n in range(8)] == [*"bbcc", *"aaaa"]
    assert not index.fits(shape(1))


def test_a_pod_without_devices_goes_by_its_other_resources() -> None:
    index = FitIndex()
    index.put_node(node("a", {"cpu": "8"}))
    index.put_node(node("b", {"cpu": "4"}))
    assert index.assume("u", shape(0, requests={"cpu": "1"})) == "b"


def test_every_resource_must_be_free_on_one_node() -> None:
    index = FitIndex()
    index.put_node(node("a", {GPU: "8", "cpu": "1"}))
    index.put_node(node("b", {GPU: "0", "cpu": "64"}))
    assert index.fits(shape(1, requests={"cpu": "1"}))
    assert not index.fits(shape(1, requests={"cpu": "2"}))
    assert not index.fits(shape(1, requests={"example.com/nic": "1"}))


def test_the_number_of_pods_is_a_resource_too() -> None:
    index = FitIndex()
    index.put_node(node("a", {"pods": "1"}))
    assert index.assume("u", shape(1)) == "a"
    assert not index.fits(shape(1))


def test_what_is_released_is_free_again() -> None:
    index = _index(a=4)
    index.assume("u", shape(4))
    assert not index.fits(shape(1))
    index.release("u")
    index.release("u")
    index.release("never seen")
    assert index.fits(shape(4))


def test_a_pod_bound_elsewhere_than_assumed_moves() -> None:
    index = _index(a=4, b=4)
    assert index.assume("u", shape(4)) == "a"
    index.bind("u", "b", GPUS_4)
    assert (index.free("a")[GPU], index.free("b").get(GPU)) == (4, None)
    assert index.node_of("u") == "b"


def test_a_pod_bound_twice_counts_once_and_with_its_latest_requests() -> None:
    index = _index(a=4)
    index.bind("u", "a", {GPU: 1})
    index.bind("u", "a", {GPU: 1})
    assert index.free("a")[GPU] == 3
    index.bind("u", "a", {GPU: 2})
    assert index.free("a")[GPU] == 2


def test_a_bound_pod_is_not_moved_by_assuming_it() -> None:
    index = _index(a=4, b=2)
    index.bind("u", "a", GPUS_4)
    assert index.assume("u", shape(1)) == "a"
    assert index.free("b")[GPU] == 2


def test_assuming_a_pod_again_changes_nothing() -> None:
    index = _index(a=4, b=8)
    assert index.assume("u", shape(2)) == "a"
    index.bind("v", "b", {GPU: 6})
    assert index.assume("u", shape(2)) == "a"
    assert index.free("a")[GPU] == 2


def test_a_pod_assumed_with_another_shape_is_moved_or_stays_as_it_was() -> None:
    index = _index(a=2, b=4)
    assert index.assume("u", shape(1)) == "a"
    assert index.assume("u", shape(4)) == "b"
    assert index.free("a")[GPU] == 2
    assert index.assume("u", shape(8)) is None
    assert (index.node_of("u"), index.free("b").get(GPU)) == ("b", None)


def test_pods_on_a_node_that_is_not_known_yet_count_once_it_appears() -> None:
    index = FitIndex()
    index.bind("u", "a", {GPU: 7, "pods": 1})
    assert not index.fits(shape(1))
    assert index.free("a") == {}
    index.put_node(node("a"))
    assert index.fits(shape(1))
    assert not index.fits(shape(2))


def test_a_node_that_comes_back_still_has_its_pods() -> None:
    index = _index(a=8)
    index.bind("u", "a", GPUS_4)
    index.remove_node("a")
    index.remove_node("a")
    assert not index.fits(shape(1))
    index.put_node(node("a"))
    assert index.fits(shape(4))
    assert not index.fits(shape(5))


def test_a_slot_that_is_used_again_is_judged_anew() -> None:
    index = _index(a=8)
    assert index.assume("u", shape(1)) == "a"
    index.remove_node("a")
    index.put_node(node("b", {GPU: "2"}))
    assert index.fits(shape(1))
    assert index.assume("v", shape(1)) == "b"
    assert not index.fits(shape(1))


def test_a_slot_that_is_used_again_does_not_pass_for_the_node_that_it_was() -> None:
    index = _index(a=4, m=4)
    assert index.assume("u", shape(1)) == "a"
    index.release("u")
    assert index.assume("u", shape(1)) == "a"
    index.release("u")
    index.remove_node("a")
    index.put_node(node("z", {GPU: "4"}))
    assert index.assume("u", shape(1)) == "m"


@pytest.mark.parametrize(
    "changed",
    [
        node("a", ready="False"),
        node("a", unschedulable=True),
        node("a", taints=[{"key": "dedicated", "effect": "NoSchedule"}]),
        node("a", {GPU: "1"}),
    ],
)
def test_assumed_pods_leave_a_node_that_no_longer_takes_them_and_bound_ones_stay(
    changed: object,
) -> None:
    index = _index(a=8)
    index.bind("bound", "a", {GPU: 1, "pods": 1})
    assert index.assume("assumed", shape(2)) == "a"
    index.put_node(changed)  # type: ignore[arg-type]  # a node; parametrize does not say so
    assert index.node_of("bound") == "a"
    assert index.node_of("assumed") is None
    index.put_node(node("b", {GPU: "2"}))
    assert index.node_of("assumed") == "b"


def test_assumed_pods_make_way_for_one_that_was_bound_where_they_are_the_latest_first() -> None:
    index = _index(a=8, b=2)
    for name in ("first", "second", "third"):
        index.assume(name, shape(2))
    assert [index.node_of(name) for name in ("first", "second", "third")] == ["b", "a", "a"]
    index.bind("stranger", "a", GPUS_4)
    assert index.free("a").get(GPU) is None
    index.bind("another", "a", {"cpu": 1})
    assert index.node_of("third") == "a"
    index.bind("last", "a", {GPU: 1})
    assert index.node_of("second") == "a"
    assert index.unplaced() == ("third",)


def test_a_released_pod_that_no_node_holds_gets_the_room_that_appears_before_others() -> None:
    index = _index(a=4)
    index.assume("u", shape(4))
    assert index.place("released", shape(3)) is None
    assert index.place("released", shape(3)) is None
    assert index.unplaced() == ("released",)
    index.release("u")
    assert index.assume("new", shape(2)) is None
    assert index.node_of("released") == "a"
    assert index.assume("small", shape(1)) == "a"


def test_pods_without_a_node_are_tried_in_the_order_in_which_they_came() -> None:
    index = _index(a=2)
    index.bind("u", "a", {GPU: 2})
    for name in ("first", "second", "third"):
        assert index.place(name, shape(1)) is None
    index.release("u")
    assert [index.node_of(name) for name in ("first", "second", "third")] == ["a", "a", None]


def test_a_pod_without_a_node_may_be_bound_or_released() -> None:
    index = _index(a=1)
    index.place("u", shape(2))
    index.place("v", shape(2))
    index.bind("u", "a", {GPU: 2})
    index.release("v")
    assert index.unplaced() == ()
    assert index.free("a")[GPU] == -1


def test_a_trial_leaves_nothing_behind_unless_it_is_kept() -> None:
    index = _index(a=4, b=2)
    before = (index.free("a"), index.free("b"))
    with index.trial():
        assert [index.assume(str(n), shape(2)) for n in range(3)] == ["b", "a", "a"]
        assert not index.fits(shape(1))
    assert (index.free("a"), index.free("b")) == before
    assert index.node_of("0") is None
    with index.trial() as trial:
        index.assume("0", shape(2))
        trial.keep()
    assert index.node_of("0") == "b"


def test_a_trial_is_undone_when_it_fails_with_an_error() -> None:
    index = _index(a=4)

    def plan() -> None:
        with index.trial():
            index.assume("u", shape(2))
            raise KeyError("planner")

    with pytest.raises(KeyError):
        plan()
    assert index.free("a")[GPU] == 4


def test_a_trial_kept_within_another_is_undone_with_that() -> None:
    index = _index(a=4)
    with index.trial():
        with index.trial() as inner:
            index.assume("u", shape(2))
            inner.keep()
        with index.trial():
            index.assume("v", shape(2))
        assert index.free("a")[GPU] == 2
    assert index.free("a")[GPU] == 4


def test_what_was_seen_bound_during_a_trial_stays() -> None:
    index = _index(a=4)
    with index.trial():
        index.assume("u", shape(2))
        index.bind("u", "a", {GPU: 2})
        index.assume("v", shape(1))
        index.release("v")
    assert index.free("a")[GPU] == 2


def test_a_trial_puts_back_a_pod_that_it_moved() -> None:
    index = _index(a=2, b=8)
    index.assume("u", shape(1))
    with index.trial():
        assert index.assume("u", shape(8)) == "b"
    assert (index.node_of("u"), index.free("b")[GPU]) == ("a", 8)


def test_a_pod_put_back_by_a_trial_makes_way_for_one_bound_there_meanwhile() -> None:
    index = _index(a=2, b=8)
    index.assume("u", shape(2))
    with index.trial():
        assert index.assume("u", shape(8)) == "b"
        index.bind("v", "a", {GPU: 1})
    assert index.free("a")[GPU] == 1
    assert index.node_of("u") == "b"


def test_room_that_appears_in_a_trial_goes_to_waiting_pods_afterwards() -> None:
    index = _index(a=2)
    index.assume("u", shape(2))
    index.place("waiting", shape(2))
    with index.trial():
        index.release("u")
        assert index.node_of("waiting") is None
    assert index.node_of("waiting") == "a"


def test_a_trial_lets_a_pod_wait_again_that_it_placed_with_another_shape() -> None:
    index = _index(a=2)
    index.place("u", shape(4))
    with index.trial():
        assert index.assume("u", shape(2)) == "a"
    assert index.unplaced() == ("u",)
    assert index.fits(shape(2))


def test_a_node_could_hold_a_pod_if_it_were_empty_and_open() -> None:
    index = FitIndex()
    index.put_node(node("a", ready="False", unschedulable=True))
    index.bind("u", "a", {GPU: 8})
    assert not index.fits(shape(8))
    assert index.could_ever_fit(shape(8))
    assert not index.could_ever_fit(shape(9))
    assert not index.could_ever_fit(shape(1, nodeSelector={"zone": "a"}))
    index.remove_node("a")
    assert not index.could_ever_fit(shape(8))


def test_reasons_count_nodes_and_lack_of_room_comes_first() -> None:
    index = _index(a=8, b=8, c=2)
    for name in ("d", "e"):
        index.put_node(node(name, {GPU: "0"}))
    index.put_node(node("f", unschedulable=True))
    index.bind("u", "a", {GPU: 8})
    index.bind("v", "b", {GPU: 9})
    report = index.explain(shape(2))
    assert (report.nodes, report.feasible) == (6, 1)
    assert list(report.reasons.items()) == [
        (f"{GPU}: 0 of 8 free, needs 2", 2),
        (f"no {GPU}", 2),
        ("cordoned", 1),
    ]
    assert str(report) == (
        f"1 of 6 nodes fit: {GPU}: 0 of 8 free, needs 2 (2); no {GPU} (2); cordoned (1)"
    )


def test_reasons_follow_what_happens() -> None:
    index = _index(a=8)
    index.explain(shape(8))
    index.assume("u", shape(4))
    assert dict(index.explain(shape(8)).reasons) == {f"{GPU}: 4 of 8 free, needs 8": 1}
    index.remove_node("a")
    assert str(index.explain(shape(8))) == "0 of 0 nodes fit"
    index.put_node(node("b", labels={"zone": "a"}))
    index.release("u")
    assert str(index.explain(shape(8))) == "1 of 1 nodes fit"


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ({"cpu": "9"}, "cpu: less than 9 free"),
        ({"cpu": "9500m"}, "cpu: less than 9500m free"),
        ({"memory": "64Gi"}, "memory: less than 65536Mi free"),
        ({"cpu": "much"}, "cpu: asks what cannot be read"),
        ({"example.com/mem": "2000"}, "example.com/mem: less than 2000 free"),
    ],
)
def test_what_differs_on_every_node_is_told_without_its_number(
    requests: dict[str, str], words: str
) -> None:
    index = FitIndex()
    index.put_node(node("a", {"example.com/mem": "1000"}))
    assert list(index.explain(shape(0, requests=requests)).reasons) == [words]


def test_a_node_full_of_pods_says_so() -> None:
    index = FitIndex()
    index.put_node(node("a", {"pods": "1"}))
    index.bind("u", "a", {"pods": 1})
    assert list(index.explain(shape(1)).reasons) == ["pods: 1 of 1 taken"]


def test_rare_reasons_are_counted_together_in_the_line() -> None:
    index = FitIndex()
    for number in range(7):
        for copy in range(7 - number):
            taint = {"key": f"t{number}", "effect": "NoSchedule"}
            index.put_node(node(f"{number}-{copy}", taints=[taint]))
    assert str(index.explain(shape(1))).endswith("taint t3 (4); other reasons (6)")
    assert len(index.explain(shape(1)).reasons) == 7


def test_shapes_that_nobody_asks_about_are_forgotten() -> None:
    index = FitIndex(max_shapes=2)
    index.put_node(node("a"))
    for count in (1, 2, 3, 1, 9):
        assert index.fits(shape(count)) is (count <= 8)
    assert len(index._known) == 2


def test_equal_shapes_are_one() -> None:
    one = FitShape.of({"pods": 1, GPU: 2, "cpu": 0}, Constraints())
    other = FitShape.of({GPU: 2, "pods": 1}, Constraints())
    assert one == other
    assert hash(one) == hash(other)
    assert one.devices == (GPU,)
    assert one != shape(2, nodeSelector={"a": "b"})


def test_the_heap_of_candidates_does_not_grow_with_events() -> None:
    index = _index(a=8, b=8)
    index.assume("u", shape(1))
    for _ in range(1000):
        index.bind("v", "b", {GPU: 1})
        assert index.assume("w", shape(1)) is not None
        index.release("v")
        index.release("w")
    heap = index._known[shape(1)].candidates._heap
    assert heap is not None
    assert len(heap) < 100


def test_the_number_that_fits_is_over_all_nodes_and_by_what_is_scarcest() -> None:
    index = _index(a=8, b=3)
    index.put_node(node("c", {"cpu": "1"}))
    assert index.count(shape(2)) == 4 + 1 + 4
    assert index.count(shape(2, requests={"cpu": "1"})) == 4 + 1 + 1
    index.bind("u", "a", {GPU: 7})
    index.remove_node("c")
    assert index.count(shape(2)) == 1


def test_room_is_reserved_where_least_is_lacking_and_given_back_with_the_trial() -> None:
    index = _index(a=8, b=8)
    index.bind("u", "a", {GPU: 7})
    index.bind("v", "b", {GPU: 3})
    with index.trial():
        assert index.reserve(["big", "bigger"], shape(6)) == ("b", "a")
        assert not index.fits(shape(1))
        index.release("bigger")
        assert index.fits(shape(1))
        assert index.assume("small", shape(1)) == "a"
    assert (index.free("a")[GPU], index.free("b")[GPU]) == (1, 5)


def test_devices_that_are_lacking_weigh_more_than_all_the_rest() -> None:
    index = _index(a=2, b=2)
    index.bind("u", "a", {GPU: 1})
    index.bind("v", "b", {"cpu": 7999})
    with index.trial():
        assert index.reserve(["w"], shape(2, requests={"cpu": "8"})) == ("b",)


def test_nothing_is_reserved_where_no_node_admits_the_pod() -> None:
    index = _index(a=8)
    with index.trial():
        assert index.reserve(["u"], shape(1, nodeSelector={"zone": "a"})) == ()
    assert index.free("a")[GPU] == 8


def test_reserving_for_a_pod_that_is_known_moves_it() -> None:
    index = _index(a=2, b=8)
    index.assume("u", shape(2))
    with index.trial():
        assert index.reserve(["u"], shape(8)) == ("b",)
        assert index.free("a")[GPU] == 2
    assert index.node_of("u") == "a"
