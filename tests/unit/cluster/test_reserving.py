# SPDX-License-Identifier: Apache-2.0
"""How many pods there is room for, and room that is kept where least is lacking."""

from hypothesis import given
from hypothesis import strategies as st

from policies.cluster.fit import FitIndex
from tests.support.builders import GPU
from tests.support.cluster import node, shape


def index(*sizes: int) -> FitIndex:
    found = FitIndex()
    for number, size in enumerate(sizes):
        found.put_node(node(f"n{number}", {GPU: str(size)}))
    return found


@given(st.lists(st.integers(0, 8), max_size=5), st.integers(1, 4), st.data())
def test_the_count_is_how_many_can_be_assumed(
    sizes: list[int], gpus: int, data: st.DataObject
) -> None:
    nodes = index(*sizes)
    wanted = shape(gpus)
    assert nodes.count(wanted) == sum(min(size // gpus, 110) for size in sizes)
    for number in range(data.draw(st.integers(0, 3))):
        nodes.assume(f"other-{number}", shape(1))
    counted = nodes.count(wanted)
    assumed = 0
    while nodes.assume(f"pod-{assumed}", wanted) is not None:
        assumed += 1
    assert counted == assumed
    assert nodes.count(wanted) == 0


def test_nodes_that_do_not_admit_a_pod_count_nothing() -> None:
    nodes = index(8)
    nodes.put_node(node("n0", {GPU: "8"}, unschedulable=True))
    assert nodes.count(shape(1)) == 0
    nodes.remove_node("n0")
    assert nodes.count(shape(1)) == 0


def test_room_is_kept_where_least_is_lacking_until_the_trial_ends() -> None:
    nodes = index(8, 8)
    for number in range(11):
        nodes.bind(f"uid-{number}", "n0" if number < 5 else "n1", {GPU: 1})
    with nodes.trial():
        assert nodes.reserve(["big"], shape(4)) == ("n0",)
        assert nodes.free("n0")[GPU] == -1
        assert nodes.assume("small", shape(1)) == "n1"
        nodes.release("big")
        assert nodes.free("n0")[GPU] == 3
    assert nodes.free("n0")[GPU] == 3
    assert nodes.free("n1")[GPU] == 2


def test_several_are_kept_room_for_on_several_nodes() -> None:
    nodes = index(4, 4)
    nodes.bind("x", "n0", {GPU: 2})
    nodes.bind("y", "n1", {GPU: 3})
    with nodes.trial():
        assert sorted(nodes.reserve(["a", "b"], shape(4))) == ["n0", "n1"]
        assert not nodes.fits(shape(1))


def test_no_room_is_kept_where_no_node_could_ever_hold_the_pod() -> None:
    nodes = index(4)
    with nodes.trial():
        assert nodes.reserve(["a"], shape(5)) == ()
        assert nodes.fits(shape(4))


def test_keeping_room_takes_none_from_pods_that_were_released_already() -> None:
    nodes = index(4)
    nodes.place("released", shape(3))
    with nodes.trial():
        nodes.reserve(["big"], shape(4))
        assert nodes.node_of("released") == "n0"
    assert nodes.node_of("released") == "n0"
    assert nodes.unplaced() == ()
