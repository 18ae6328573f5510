# SPDX-License-Identifier: Apache-2.0
"""Of every node it is told why it is out, or what it lost by."""

from policies.cluster.constraints import read_constraints
from policies.cluster.demand import read_requests
from policies.cluster.shape import FitShape
from policies.placement.filtering import Limits
from policies.placement.occupancy import Gauge
from policies.placement.verdicts import EQUAL, OTHER_STRATEGY, Out, Verdicts, judge_nodes
from reconciler.cli.fleet import Fleet, Readers
from tests.controlplane import nodes
from tests.support.builders import GPU, SHARED, Json, catalog
from tests.support.fleets import fleet, pod, ready
from tests.support.pools import pools


def judged(
    found: Fleet, resource: str, count: int, mib: int = 0, selector: Json | None = None
) -> Verdicts:
    """Return what becomes of nodes for a pod that is on none."""
    raw = pod("asked", "", {resource: count}, mib=mib)
    raw["spec"]["nodeSelector"] = selector or {}
    shape = FitShape.of(read_requests(raw), read_constraints(raw["spec"]))
    return judge_nodes(found.model, Readers(catalog()).pod(raw).pod, [shape], Limits())


def some() -> list[Json]:
    return [
        ready(nodes.cpu("cpu")),
        *(ready(nodes.whole(f"whole-{i}")) for i in range(3)),
        ready(nodes.time_sliced("shared", count=1, replicas=4)),
        pod("a", "whole-0", {GPU: 7}),
        pod("b", "whole-1", {GPU: 4}),
        pod("c", "shared", {SHARED: 2}, mib=40000),
    ]


def test_nodes_in_the_running_are_ranked_and_each_says_what_it_lost_by() -> None:
    found = judged(fleet(some()), GPU, 1)
    assert [(each.name, each.score) for each in found.standing] == [
        *(("whole-0", 10), ("whole-2", 9), ("whole-1", 4))
    ]
    assert [each.lost_by for each in found.standing] == ["", "fragmentation", "fragmentation"]
    assert found.lost == {"fragmentation": 2}
    assert found.nodes == 5


def test_nodes_that_are_out_are_grouped_by_reason_the_most_first() -> None:
    found = judged(fleet(some()), GPU, 6)
    assert [each.name for each in found.standing] == ["whole-2"]
    assert found.out == (
        Out(f"no {GPU}", ("cpu", "shared"), by_extender=False),
        Out(f"{GPU}: 1 of 8 free, needs 6", ("whole-0",), by_extender=False),
        Out(f"{GPU}: 4 of 8 free, needs 6", ("whole-1",), by_extender=False),
    )


def test_what_the_extender_alone_sees_is_told_apart() -> None:
    found = judged(fleet(some()), SHARED, 1, mib=50000)
    (memory,) = (each for each in found.out if each.by_extender)
    assert memory == Out("GPU memory: 1559 MiB free on a card, needs 50000", ("shared",), True)
    assert found.standing == ()


def test_a_hot_node_is_out() -> None:
    hot = fleet(some())
    hot.model.put_gauge("shared", Gauge(load=900, loads=(900,)))
    (load,) = (each for each in judged(hot, SHARED, 1).out if each.by_extender)
    assert load.reason == "GPUs are overloaded: load 0.90, threshold 0.80"


def test_a_node_that_is_as_good_as_the_best_lost_by_its_name() -> None:
    found = judged(fleet([ready(nodes.whole("b")), ready(nodes.whole("a"))]), GPU, 1)
    assert [(each.name, each.lost_by) for each in found.standing] == [("a", ""), ("b", EQUAL)]


def test_nodes_of_different_strategies_are_told_apart() -> None:
    spread = [_in_pool(ready(nodes.time_sliced(f"s{i}", count=1, replicas=4))) for i in range(2)]
    packed = [ready(nodes.time_sliced(f"p{i}", count=1, replicas=4)) for i in range(2)]
    found = fleet([*spread, *packed, pod("a", "s0", {SHARED: 1}), pod("b", "p1", {SHARED: 1})])
    found.model.set_policies(pools(red="{strategy: Spread}"))
    standing = judged(found, SHARED, 1).standing
    assert [(each.name, each.lost_by, each.strategy) for each in standing] == [
        ("p1", "", "Pack"),
        ("p0", "GPU left", "Pack"),
        ("s1", OTHER_STRATEGY, "Spread"),
        ("s0", OTHER_STRATEGY, "Spread"),
    ]


def test_where_the_best_is_spread_the_others_lost_to_it_by_its_own_keys() -> None:
    nodes_ = [_in_pool(ready(nodes.time_sliced(f"s{i}", count=1, replicas=4))) for i in range(2)]
    found = fleet([*nodes_, pod("a", "s0", {SHARED: 1})])
    found.model.set_policies(pools(red="{strategy: Spread}"))
    standing = judged(found, SHARED, 1).standing
    assert [(each.name, each.lost_by) for each in standing] == [("s1", ""), ("s0", "GPU taken")]


def _in_pool(raw: Json) -> Json:
    raw["metadata"]["labels"]["pool"] = "red"
    return raw


def test_what_the_pod_itself_demands_keeps_nodes_out() -> None:
    found = judged(fleet(some()), GPU, 1, selector={"zone": "a"})
    assert [(each.reason, len(each.nodes)) for each in found.out] == [("node selector zone=a", 5)]


def test_a_pod_that_may_go_in_several_ways_is_out_only_where_none_will_do() -> None:
    found = fleet(some())
    raw = pod("asked", "", {GPU: 1})
    constraints = (
        {**raw["spec"], "nodeSelector": {"kubernetes.io/hostname": name}}
        for name in ("whole-0", "whole-2")
    )
    shapes = [FitShape.of(read_requests(raw), read_constraints(spec)) for spec in constraints]
    verdicts = judge_nodes(found.model, Readers(catalog()).pod(raw).pod, shapes)
    assert {each.name for each in verdicts.standing} == {"whole-0", "whole-2"}


def test_without_nodes_there_are_no_verdicts() -> None:
    assert judged(fleet([]), GPU, 1) == Verdicts((), ())
