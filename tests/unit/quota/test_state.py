# SPDX-License-Identifier: Apache-2.0
"""One feed keeps ledger, nodes, queue and histories in step."""

from dataclasses import replace

from policies.cluster.nodes import Taint
from policies.model.facts import NamespaceFacts
from policies.model.labels import LabelSelector
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.planning.values import Why
from policies.quota.pods import Phase
from policies.quota.state import QuotaState
from tests.support.builders import GPU, catalog
from tests.support.planning import World, node, released, tenant, why


def test_what_was_fed_before_there_were_policies_counts_once_there_are() -> None:
    world = World([tenant("a", 4, 4)], [node("n1")])
    (running, waiting) = world.wait("a", many=2)
    (release, _) = world.plan().releases
    state = QuotaState(catalog())
    assert not state.is_ready
    state.put_pod(replace(running, phase=Phase.LIVE, charge=release.charge))
    state.put_pod(waiting)
    state.put_node(node("n1"))
    state.put_namespace(NamespaceFacts("a", {}))
    state.charge_intent(waiting.uid, release.charge)
    state.set_policies(world.state.policies)
    world.state = state
    assert world.used("a") == 2000
    assert state.capacities() == {"": 8000}
    assert state.fit.free("n1")[GPU] == 6


def test_a_pod_that_is_gone_leaves_nothing_behind() -> None:
    world = World([tenant("a", 4, 4)], [node("n1")])
    (running,) = world.run("a")
    (waiting,) = world.wait("a", gang=("g", 2))
    world.end(running, waiting)
    assert world.used("a") == 0
    assert world.state.fit.free("n1")[GPU] == 8
    assert not world.state.queue.tenants
    assert not list(world.state.pods())
    assert not list(world.state.pods_of("a"))


def test_a_pod_that_ended_gives_back_quota_and_room() -> None:
    world = World([tenant("a", 4, 4)], [node("n1")])
    (pod,) = world.run("a", 4)
    world.state.put_pod(replace(pod, phase=Phase.ENDED))
    assert world.used("a") == 0
    assert world.state.fit.free("n1")[GPU] == 8


def test_a_release_that_is_under_way_takes_room_on_nodes() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 2)])
    (first, _) = world.wait("a", many=2)
    (release, _) = world.plan().releases
    world.state.charge_intent(first.uid, release.charge)
    assert world.state.fit.free("n1")[GPU] == 1
    assert len(world.plan().releases) == 1
    world.state.put_pod(replace(first, version="9", reason="x"))
    assert world.state.fit.free("n1")[GPU] == 1
    world.state.settle(first.uid)
    assert world.state.fit.free("n1")[GPU] == 2


def test_a_release_takes_room_where_its_plan_found_it_unless_that_is_gone() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 2), node("n2", 4)])
    first, second = world.wait("a", many=2)
    charge = world.plan().releases[0].charge
    world.state.charge_intent(first.uid, charge, "n2")
    assert world.state.fit.node_of(first.uid) == "n2"
    world.state.charge_intent(second.uid, charge, "n9")
    assert world.state.fit.node_of(second.uid) == "n1"
    world.state.remove_node("n2")
    assert world.state.fit.node_of(first.uid) == "n1"


def test_a_pod_on_a_lost_node_counts_until_its_grace_is_over() -> None:
    world = World([tenant("a", 1, 1)], [node("n1", 1), node("n2", 1)])
    (pod,) = world.run("a")
    world.bind(pod, "n1")
    world.state.put_pod(replace(world.pod(pod.uid), deleted_at=world.now + 30))
    unreachable = Taint("node.kubernetes.io/unreachable", "", "NoExecute")
    world.state.put_node(replace(node("n1", 1), taints=(unreachable,), ready=False))
    (waiting,) = world.wait("a")
    assert why(world.plan(), waiting) is Why.CEILING
    world.now += 31
    assert released(world.plan()) == ["a"]
    world.state.put_node(node("n1", 1))
    assert why(world.plan(), waiting) is Why.CEILING


def test_a_pod_on_a_node_that_is_there_counts_however_long_it_takes_to_end() -> None:
    world = World([tenant("a", 1, 1)], [node("n1", 2)])
    (pod,) = world.run("a")
    world.bind(pod, "n1")
    world.state.put_pod(replace(world.pod(pod.uid), deleted_at=world.now + 30))
    (waiting,) = world.wait("a")
    world.now += 10_000
    assert why(world.plan(), waiting) is Why.CEILING


def test_a_history_that_is_inherited_goes_on() -> None:
    lender, borrower = tenant("lender", 4, 4, cohort="c"), tenant("b", 0, 8, cohort="c")
    old = World([lender, borrower], [node("n1", 4)])
    old.idle()
    plain = old.state.histories.plain_of(lender)
    new = World([lender, borrower], [node("n1", 4)])
    new.now = old.now + 20
    (pod,) = new.wait("b")
    assert why(new.plan(), pod) is Why.BORROWING
    for pool, history in plain.items():
        new.state.inherit_history("lender", pool, history)
    assert released(new.plan()) == ["b"]


def test_who_has_changed_is_told_once() -> None:
    world = World([tenant("a", 4, 4), tenant("b", 4, 4)], [node("n1")])
    world.state.take_changed()
    world.run("a")
    world.plan()
    assert world.state.take_changed() == {"a"}
    assert world.state.take_changed() == frozenset()


def test_a_node_that_grows_is_counted_anew() -> None:
    world = World([tenant("a", 0, 8)], [node("n1", 2)])
    world.wait("a", many=4)
    assert len(world.act().releases) == 2
    world.state.put_node(node("n1", 3))
    assert world.state.capacities() == {"": 3000}
    assert len(world.act().releases) == 1
    world.state.remove_node("n1")
    assert world.state.capacities()[""] == 0


def test_a_budget_that_never_allows_eviction_makes_work_that_must_fit_the_guarantee() -> None:
    world = World([tenant("a", 0, 8)], [node("n1")])
    (pod,) = world.wait("a", labels={"app": "x"})
    budget = PodDisruptionBudget("a", "never", LabelSelector(), max_unavailable=0)
    world.state.set_pdbs("a", [budget])
    assert why(world.plan(), pod) is Why.NEVER
    world.state.set_pdbs("a", [])
    (release,) = world.plan().releases
    assert release.charge.reclaimable


def test_what_a_budget_counts_moves_nobody_in_line() -> None:
    world = World([tenant("a", 0, 8)], [node("n1")])
    world.wait("a", many=3, labels={"app": "x"})
    budget = PodDisruptionBudget("a", "some", LabelSelector(), max_unavailable=1, expected=3)
    world.state.set_pdbs("a", [budget])
    version = world.state.queue.tenants["a"].version
    world.state.set_pdbs("a", [replace(budget, disruptions_allowed=1, expected=9)])
    assert world.state.queue.tenants["a"].version == version
    world.state.set_pdbs("a", [replace(budget, max_unavailable=0)])
    assert world.state.queue.tenants["a"].version != version
