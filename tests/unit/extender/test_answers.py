# SPDX-License-Identifier: Apache-2.0
"""Which nodes pass, which one is best, and what is taken for given out."""

import pytest

from policies.model.placement import Spreading, SpreadSettings
from policies.placement.filtering import Limits
from policies.placement.model import ModelSettings
from policies.placement.occupancy import Gauge
from tests.controlplane import nodes
from tests.support.pools import pools
from tests.unit.extender.building import (
    READER,
    SHARED,
    WHOLE,
    Json,
    World,
    limits,
    owned_by,
    raw_pod,
    shared,
)
from webhook.extender.wire import Question, Sifted

_MIB = nodes.H100.memory_mib


def ask(world: World, pod: Json, *names: str) -> Sifted:
    return world.answers.filter(Question(pod, names))


def score(world: World, pod: Json, *names: str) -> dict[str, int]:
    return dict(world.answers.prioritize(Question(pod, names)))


def test_exactly_one_node_gets_10_and_all_are_scored_from_0_to_10() -> None:
    world = World()
    names = [f"n{i}" for i in range(40)]
    for name in names:
        world.node(shared(name))
    scores = score(world, raw_pod("a"), *names)
    assert list(scores.values()).count(10) == 1
    assert set(scores) == set(names)
    assert all(0 <= value <= 10 for value in scores.values())


def test_a_pod_counts_at_once_on_the_node_that_was_given_10() -> None:
    world = World()
    for name in ("a", "b"):
        world.node(shared(name))
    first = raw_pod("p", mib=60_000)
    assert list(ask(world, first, "a", "b").names) == ["a", "b"]
    scores = score(world, first, "a", "b")
    winner = max(scores, key=scores.__getitem__)
    second = ask(world, raw_pod("q", mib=60_000), "a", "b")
    assert winner not in second.names
    assert len(second.names) == 1


def test_a_node_that_another_scheduler_was_given_meanwhile_is_not_the_best_for_a_second() -> None:
    world = World()
    names = ["a", "b", "c"]
    for name in names:
        world.node(shared(name))
    pods = [raw_pod(f"p{number}", mib=60_000) for number in range(4)]
    for pod in pods:
        assert list(ask(world, pod, *names).names) == names
    given = [score(world, pod, *names) for pod in pods]
    winners = [max(scores, key=scores.__getitem__) for scores in given]
    assert sorted(winners[:3]) == names


def test_a_pod_counts_on_the_only_node_that_passes_since_no_scores_are_asked() -> None:
    world = World()
    world.node(shared("a"))
    assert list(ask(world, raw_pod("p", mib=60_000), "a").names) == ["a"]
    assert list(ask(world, raw_pod("q", mib=60_000), "a").names) == []


def test_an_assumption_ends_with_its_time() -> None:
    world = World(ModelSettings(assume_seconds=30))
    world.node(shared("a"))
    ask(world, raw_pod("p", mib=60_000), "a")
    world.clock.now += 29
    assert not ask(world, raw_pod("q", mib=60_000), "a").names
    world.clock.now += 1
    assert ask(world, raw_pod("q", mib=60_000), "a").names


def test_an_assumption_ends_when_its_pod_is_gone() -> None:
    world = World()
    world.node(shared("a"))
    ask(world, raw_pod("p", mib=60_000), "a")
    world.model.remove_pod("uid-p")
    assert ask(world, raw_pod("q", mib=60_000), "a").names


def test_a_pod_that_is_gone_before_its_scheduler_knows_takes_no_room_of_others() -> None:
    world = World()
    world.node(shared("a"))
    world.node(shared("b"))
    gone = raw_pod("p", mib=60_000)
    world.model.put_pod(READER.read(gone))
    world.model.remove_pod("uid-p")
    assert ask(world, gone, "a").names
    assert score(world, gone, "a", "b")["a"] == 10
    assert not world.model.assumed
    assert ask(world, raw_pod("q", mib=60_000), "a").names


def test_an_assumption_moves_to_where_its_pod_is_seen_bound() -> None:
    world = World()
    world.node(shared("a"))
    world.node(shared("b"))
    ask(world, raw_pod("p", mib=60_000), "a")
    world.bound(raw_pod("p", mib=60_000), "b")
    assert list(ask(world, raw_pod("q", mib=60_000), "a", "b").names) == ["a"]
    world.clock.now += 1000  # what is bound never ends by time
    assert list(ask(world, raw_pod("r", mib=60_000), "b").names) == []


def test_a_pod_that_is_scheduled_anew_is_not_in_its_own_way() -> None:
    world = World()
    world.node(shared("a"))
    for _ in range(3):
        assert list(ask(world, raw_pod("p", mib=60_000), "a").names) == ["a"]


def test_a_pod_without_gpus_passes_everywhere_and_is_ranked_nowhere() -> None:
    world = World()
    world.node(shared("a"))
    pod = raw_pod("cpu", count=0)
    assert list(ask(world, pod, "a", "x").names) == ["a", "x"]
    assert score(world, pod, "a", "x") == {"a": 0, "x": 0}


def test_nodes_that_are_not_known_pass_and_are_not_told_apart() -> None:
    world = World()
    assert list(ask(world, raw_pod("p"), "x", "y").names) == ["x", "y"]
    assert score(world, raw_pod("p"), "x", "y") == {"x": 0, "y": 0}


def test_with_an_old_picture_every_node_passes_and_none_is_better() -> None:
    world = World()
    for name in ("a", "b"):
        world.node(shared(name))
    ask(world, raw_pod("p", mib=60_000), "a")
    world.is_live = False
    assert list(ask(world, raw_pod("q", mib=60_000), "a", "b").names) == ["a", "b"]
    assert score(world, raw_pod("q"), "a", "b") == {"a": 0, "b": 0}


def test_the_card_that_its_plugin_would_pick_must_have_the_memory() -> None:
    world = World()
    world.node(shared("a", cards=2))
    world.bound(raw_pod("p", mib=60_000), "a")
    # The plugin spreads, and all of it was seen: the next goes to the other card.
    assert ask(world, raw_pod("q", mib=60_000), "a").names


def test_where_picks_are_not_known_every_card_with_a_free_share_must_have_the_memory() -> None:
    world = World()
    world.node(shared("a", cards=2))
    world.bound(raw_pod("p", mib=60_000), "a", is_in_order=False)
    refused = ask(world, raw_pod("q", mib=60_000), "a")
    assert refused.unresolvable == {
        "a": f"GPU memory: {_MIB - 60_000} MiB free on a card, needs 60000"
    }
    assert ask(world, raw_pod("r", mib=20_000), "a").names


def test_picks_are_known_again_once_a_node_was_empty() -> None:
    world = World()
    world.node(shared("a", cards=2))
    world.bound(raw_pod("p", mib=60_000), "a", is_in_order=False)
    world.model.remove_pod("uid-p")
    world.bound(raw_pod("q", mib=60_000), "a")
    assert ask(world, raw_pod("r", mib=60_000), "a").names


def test_headroom_of_each_card_stays_free() -> None:
    world = World(limits(headroom_mib=2000))
    world.node(shared("a"))
    assert not ask(world, raw_pod("p", mib=_MIB - 1999), "a").names
    assert ask(world, raw_pod("p", mib=_MIB - 2000), "a").names


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GPU_MEMORY_LIMIT", "60000Mi"),
        ("CUDA_DEVICE_MEMORY_LIMIT", "60000m"),
        ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=60000M"),
    ],
)
def test_a_limit_that_a_policy_has_set_states_a_need(variable: str, value: str) -> None:
    world = World()
    world.node(shared("a"))
    pod = raw_pod("p")
    pod["spec"]["containers"][0]["env"] = [{"name": variable, "value": value}]
    world.bound(pod, "a")
    assert not ask(world, raw_pod("q", mib=30_000), "a").names
    assert ask(world, raw_pod("q", mib=20_000), "a").names


def test_measured_memory_counts_where_pods_state_nothing() -> None:
    world = World()
    world.node(shared("a"))
    world.model.put_gauge("a", Gauge(load=100, loads=(100,), free_mib=(10_000,)))
    assert not ask(world, raw_pod("p", mib=20_000), "a").names
    assert ask(world, raw_pod("q", mib=9_000), "a").names
    assert ask(world, raw_pod("r"), "a").names  # one that states nothing goes by count


def test_measured_memory_that_is_not_known_any_more_refuses_nobody() -> None:
    world = World()
    world.node(shared("a"))
    world.model.put_gauge("a", Gauge(load=990, loads=(990,), free_mib=(0,)))
    assert not ask(world, raw_pod("p", mib=20_000), "a").names
    world.model.put_gauge("a", Gauge())
    assert ask(world, raw_pod("p", mib=20_000), "a").names


def test_an_overloaded_node_is_out_and_preemption_does_not_help() -> None:
    world = World()
    world.node(shared("a"))
    world.node(shared("b"))
    world.model.put_gauge("a", Gauge(load=800, loads=(800,)))
    world.model.put_gauge("b", Gauge(load=799, loads=(799,)))
    sifted = ask(world, raw_pod("p"), "a", "b")
    assert list(sifted.names) == ["b"]
    assert sifted.unresolvable == {"a": "GPUs are overloaded: load 0.80, threshold 0.80"}
    assert not sifted.failed


def test_the_threshold_can_be_set() -> None:
    world = World(ModelSettings(limits=Limits(threshold=950)))
    world.node(shared("a"))
    world.model.put_gauge("a", Gauge(load=900, loads=(900,)))
    assert ask(world, raw_pod("p"), "a").names


def test_busy_whole_cards_keep_nobody_off_the_idle_ones() -> None:
    world = World()
    world.node(nodes.whole("a", count=4))
    world.model.put_gauge("a", Gauge(load=825, loads=(990, 990, 990, 330)))
    assert ask(world, raw_pod("p", WHOLE, 1), "a").names
    assert not ask(world, raw_pod("q", WHOLE, 2), "a").names


def test_a_node_that_was_refused_for_load_is_told_to_who_wakes_pods() -> None:
    world = World()
    told: list[str] = []
    world.answers.refused_for_load = lambda name, _: told.append(name)
    world.node(shared("a"))
    world.model.put_gauge("a", Gauge(load=900, loads=(900,)))
    ask(world, raw_pod("p"), "a")
    assert told == ["a"]


def test_a_node_with_too_few_devices_is_left_to_preemption() -> None:
    world = World()
    world.node(shared("a"))
    for number in range(4):
        world.bound(raw_pod(f"p{number}"), "a")
    assert ask(world, raw_pod("q"), "a").failed == {"a": f"{SHARED}: 0 of 4 free, needs 1"}
    assert ask(world, raw_pod("r", count=2**63 - 1), "a").failed == {
        "a": f"{SHARED}: 4 offered, needs {2**63 - 1}"
    }


def test_exclusive_pods_and_shares_are_not_put_on_one_node() -> None:
    world = World()
    world.node(nodes.whole("a", count=2))
    world.bound(raw_pod("p", WHOLE), "a")
    world.node(shared("a", cards=2))  # cut anew under the pod
    reasons = ask(world, raw_pod("q"), "a").unresolvable
    assert reasons == {"a": "pods with whole GPUs are still on its cards"}


def test_a_pod_that_has_its_own_cards_is_not_put_on_shared_ones_of_the_same_name() -> None:
    world = World()
    raw = dict(nodes.time_sliced("a", count=2, replicas=4))
    raw["status"] = {"allocatable": {WHOLE: "8", "cpu": "8", "pods": "110"}}  # not renamed
    world.node(raw)
    own = {"nodeSelector": {"nvidia.com/gpu.sharing-strategy": "none"}}
    assert not ask(world, raw_pod("p", WHOLE, spec=own), "a").names
    assert ask(world, raw_pod("q", WHOLE), "a").names


def _tenants(tenant: str, label: str = "state.sluice.dev/tenant") -> Json:
    expressions = [
        {"key": "state.sluice.dev/tenant", "operator": "Exists"},
        {"key": label, "operator": "NotIn", "values": [tenant]},
    ]
    term = {
        "labelSelector": {"matchExpressions": expressions},
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAntiAffinity": {field: [term]}}}


def _of(tenant: str, name: str, *, walled: bool) -> Json:
    labels = {"state.sluice.dev/tenant": tenant}
    return raw_pod(name, labels=labels, spec=_tenants(tenant) if walled else {})


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (True, True)])
def test_pods_of_others_do_not_sit_beside_one_that_shares_with_its_tenant_only(
    first: bool, second: bool
) -> None:
    world = World()
    world.node(shared("a"))
    world.bound(_of("one", "p", walled=first), "a")
    assert ask(world, _of("one", "q", walled=second), "a").names
    world.model.forget("uid-q")
    assert not ask(world, _of("two", "r", walled=second), "a").names


def test_pods_that_share_with_anybody_sit_beside_each_other() -> None:
    world = World()
    world.node(shared("a"))
    world.bound(_of("one", "p", walled=False), "a")
    assert ask(world, _of("two", "q", walled=False), "a").names


def test_mig_instances_that_no_board_has_a_place_for_are_not_counted_on() -> None:
    world = World()
    # Eight of seven: a label of a geometry that was never made.
    world.node(nodes.mig_mixed("a", layout=(("1g.10gb",) * 8,)))
    resource = "nvidia.com/mig-1g.10gb"
    assert ask(world, raw_pod("p", resource, 7), "a").names
    world.model.forget("uid-p")
    refused = ask(world, raw_pod("q", resource, 8), "a")
    assert refused.unresolvable == {"a": f"{resource}: no place on its boards for 8, at most for 7"}


def test_a_need_above_an_instance_is_refused() -> None:
    world = World()
    world.node(nodes.mig_mixed("a"))
    assert ask(world, raw_pod("p", "nvidia.com/mig-1g.10gb", mib=9_000), "a").names
    assert not ask(world, raw_pod("q", "nvidia.com/mig-1g.10gb", mib=12_000), "a").names


def test_packing_fills_a_node_and_spreading_takes_an_empty_one() -> None:
    for strategy, best in ((Spreading.PACK, "b"), (Spreading.SPREAD, "a")):
        world = World(ModelSettings(spreading=SpreadSettings(strategy=strategy)))
        world.node(shared("a"))
        world.node(shared("b"))
        world.bound(raw_pod("p"), "b")
        assert score(world, raw_pod("q"), "a", "b")[best] == 10


def test_auto_spreads_under_high_load_and_packs_again_only_well_below() -> None:
    world = World(
        ModelSettings(spreading=SpreadSettings(Spreading.AUTO, spread_above=700, slack=100))
    )
    world.node(shared("a"))
    world.node(shared("b"))
    world.bound(raw_pod("p"), "b")
    for number, (load, best) in enumerate(((300, "b"), (700, "a"), (650, "a"), (550, "b"))):
        for name in ("a", "b"):
            world.model.put_gauge(name, Gauge(load=load, loads=(load,)))
        pod = raw_pod(f"q{number}")
        assert score(world, pod, "a", "b")[best] == 10, load
        world.model.forget(f"uid-q{number}")


def _pooled(world: World, name: str, pool: str) -> None:
    raw = dict(shared(name))
    labels = {**raw["metadata"]["labels"], "pool": pool}  # type: ignore[index]  # raw JSON
    world.node({**raw, "metadata": {**raw["metadata"], "labels": labels}})  # type: ignore[dict-item]


def test_each_pool_is_ranked_as_its_document_says_and_that_may_change() -> None:
    world = World()
    for name in ("r0", "r1"):
        _pooled(world, name, "red")
    for name in ("b0", "b1"):
        _pooled(world, name, "blue")
    world.model.set_policies(pools(red="{strategy: Pack}", blue="{strategy: Spread}"))
    for name in ("r1", "b1"):
        world.bound(raw_pod(f"on-{name}"), name)
    assert score(world, raw_pod("p"), "r0", "r1") == {"r1": 10, "r0": 9}
    assert score(world, raw_pod("q"), "b0", "b1") == {"b0": 10, "b1": 9}
    for name in ("p", "q"):
        world.model.forget(f"uid-{name}")
    world.model.set_policies(pools(red="{strategy: Spread}", blue="{strategy: Pack}"))
    assert score(world, raw_pod("p"), "r0", "r1") == {"r0": 10, "r1": 9}
    assert score(world, raw_pod("q"), "b0", "b1") == {"b1": 10, "b0": 9}


def test_of_nodes_of_both_strategies_one_gets_10_and_those_that_are_packed_come_first() -> None:
    world = World()
    for name, pool in (("b0", "blue"), ("b1", "blue"), ("r0", "red"), ("r1", "red")):
        _pooled(world, name, pool)
    world.model.set_policies(pools(blue="{strategy: Spread}"))
    world.bound(raw_pod("p"), "r1")
    world.bound(raw_pod("q"), "b0")
    names = ("b0", "b1", "r0", "r1")
    assert score(world, raw_pod("asked"), *names) == {"r1": 10, "r0": 9, "b1": 6, "b0": 3}
    # All of them are packed for a pod that has its cards to itself.
    assert not ask(world, raw_pod("whole", WHOLE), *names).names
    score(world, raw_pod("one", mib=70_000), *names)
    given = world.model.node_of("uid-one")
    assert given in {"r0", "r1"}


def test_of_replicas_of_one_service_each_gets_a_node_of_its_own_under_spreading() -> None:
    world = World(ModelSettings(spreading=SpreadSettings(strategy=Spreading.SPREAD)))
    world.node(shared("a"))
    world.node(shared("b"))
    owner = owned_by("ReplicaSet", "rs")
    world.bound(raw_pod("p", ownerReferences=owner), "a")
    for number in range(2):
        world.bound(raw_pod(f"other{number}"), "b")
    assert score(world, raw_pod("q", ownerReferences=owner), "a", "b")["b"] == 10


def test_the_cooler_of_two_equal_nodes_is_better() -> None:
    world = World()
    for name, load in (("a", 600), ("b", 100)):
        world.node(shared(name))
        world.model.put_gauge(name, Gauge(load=load, loads=(load,)))
    assert score(world, raw_pod("p"), "a", "b")["b"] == 10


def test_pods_of_several_gpus_get_the_better_linked_of_equal_nodes_and_others_do_not_care() -> None:
    world = World()
    for name, link in (("a", "PCIe"), ("b", "NVLink")):
        raw = dict(nodes.whole(name, count=4))
        raw["metadata"]["labels"]["sluice.dev/interconnect"] = link  # type: ignore[index]
        world.node(raw)
    assert score(world, raw_pod("p", WHOLE, 2), "a", "b")["b"] == 10
    world.model.forget("uid-p")
    assert score(world, raw_pod("q", WHOLE, 1), "a", "b")["a"] == 10


def test_the_one_that_is_chosen_is_the_one_that_would_get_10() -> None:
    names = ("a", "b", "c", "d")
    worlds = World(), World()
    for world in worlds:
        for name in names[1:]:
            world.node(shared(name))
        world.node(shared("a", replicas=2))
        score(world, raw_pod("before"), *names)
    two, one = worlds
    for number in range(6):
        pod = raw_pod(f"p{number}", mib=10_000)
        scores = score(two, pod, *ask(two, pod, *names).names)
        chosen = one.answers.choose(Question(pod, names))
        assert list(chosen.names) == [max(scores, key=scores.__getitem__)]


def test_who_cannot_be_placed_is_refused_in_the_words_of_filter() -> None:
    world = World()
    world.node(shared("a"))
    pod = raw_pod("p", mib=_MIB + 1)
    chosen = world.answers.choose(Question(pod, ("a",)))
    assert not chosen.names
    assert chosen == ask(world, pod, "a")


def test_all_are_left_to_the_scheduler_where_nothing_is_known() -> None:
    world = World()
    world.node(shared("a"))
    world.is_live = False
    assert world.answers.choose(Question(raw_pod("p"), ("a", "b"))) == Sifted(("a", "b"))
