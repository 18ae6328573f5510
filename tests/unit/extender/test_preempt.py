# SPDX-License-Identifier: Apache-2.0
"""Whom a pod may take the place of: inference first, exclusive training never, budgets last."""

from tests.controlplane import nodes
from tests.unit.extender.building import WHOLE, World, owned_by, raw_pod, shared
from webhook.extender.wire import Preemption, Victims


def _ask(world: World, **victims: Victims) -> dict[str, Victims]:
    return dict(world.answers.preempt(Preemption(raw_pod("new", mib=60_000), victims)))


def _world() -> World:
    """Three full nodes: `a` serves, `b` trains on a share, `c` has both."""
    world = World()
    for name, kinds in (("a", ["ReplicaSet"]), ("b", ["Job"]), ("c", ["ReplicaSet", "Job"])):
        world.node(shared(name, replicas=len(kinds)))
        for kind in kinds:
            pod = raw_pod(f"{name}-{kind}", ownerReferences=owned_by(kind))
            world.bound(pod, name)
    return world


def test_inference_goes_before_training() -> None:
    proposals = {"b": Victims(("uid-b-Job",)), "a": Victims(("uid-a-ReplicaSet",))}
    assert list(_ask(_world(), **proposals)) == ["a"]


def test_training_goes_where_nothing_else_would() -> None:
    proposals = {"b": Victims(("uid-b-Job",)), "c": Victims(("uid-c-ReplicaSet", "uid-c-Job"))}
    assert _ask(_world(), **proposals) == proposals


def test_violated_budgets_come_last() -> None:
    violating, training = Victims(("uid-a-ReplicaSet",), 1), Victims(("uid-b-Job",))
    assert list(_ask(_world(), a=violating, b=training)) == ["b"]
    assert list(_ask(_world(), a=violating)) == ["a"]


def test_exclusive_training_never_goes() -> None:
    world = World()
    world.node(nodes.whole("a", count=1))
    world.bound(raw_pod("train", WHOLE, ownerReferences=owned_by("Job")), "a")
    assert _ask(world, a=Victims(("uid-train",))) == {}


def test_a_label_says_what_a_pod_does_where_its_owner_does_not() -> None:
    world = World()
    for name, work in (("a", "inference"), ("b", "training")):
        world.node(shared(name, replicas=1))
        world.bound(raw_pod(f"p-{name}", labels={"sluice.dev/work": work}), name)
    assert list(_ask(world, a=Victims(("uid-p-a",)), b=Victims(("uid-p-b",)))) == ["a"]


def test_a_node_where_nobody_would_go_is_never_answered() -> None:
    assert _ask(_world(), a=Victims(())) == {}


def test_nobody_goes_where_the_pod_could_not_be_put_afterwards() -> None:
    world = World()
    world.node(shared("a", replicas=2))
    world.bound(raw_pod("big", mib=50_000, ownerReferences=owned_by("ReplicaSet")), "a")
    world.bound(raw_pod("small", mib=1000, ownerReferences=owned_by("ReplicaSet")), "a")
    assert _ask(world, a=Victims(("uid-small",))) == {}
    assert list(_ask(world, a=Victims(("uid-big",)))) == ["a"]


def test_victims_are_answered_as_they_were_proposed() -> None:
    proposal = Victims(("uid-a-ReplicaSet", "uid-unknown"), 3)
    assert _ask(_world(), a=proposal) == {"a": proposal}


def test_a_node_that_is_not_known_is_left_to_the_scheduler() -> None:
    proposal = Victims(("uid-unknown",))
    assert _ask(_world(), x=proposal) == {"x": proposal}


def test_an_old_picture_refuses_no_node_for_what_is_on_it() -> None:
    world = World()
    world.node(shared("a", replicas=2))
    world.bound(raw_pod("big", mib=50_000), "a")
    world.bound(raw_pod("small", mib=1000, ownerReferences=owned_by("ReplicaSet")), "a")
    world.is_live = False
    assert list(_ask(world, a=Victims(("uid-small",)))) == ["a"]
