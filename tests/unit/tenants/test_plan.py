# SPDX-License-Identifier: Apache-2.0
"""What a tenant's status says, and when it is written."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from policies.model.facts import NamespaceFacts
from policies.model.tenant import Lending
from policies.quota.figures import Standings, figures
from policies.quota.pods import Phase
from reconciler.tenants.plan import StatusPlan, Write
from reconciler.tenants.view import Seen, inherit, seen
from tests.support.builders import GPU
from tests.support.planning import World, node, pool, tenant

FRESH = {"name": "chat", "uid": "u1", "resourceVersion": "7"}
SINCE = "1970-01-12T13:46:40Z"


def chat(status: Mapping[str, object] | None = None, name: str = "chat") -> Seen:
    return seen({"metadata": {**FRESH, "name": name}, "status": dict(status or {})})


def planned(world: World, item: Seen | None = None) -> Write | None:
    standing = figures(world.state, world.now)
    found = StatusPlan().writes(world.state, standing, [item or chat()], world.now)
    return found[0] if found else None


def status(world: World, item: Seen | None = None) -> Mapping[str, Any]:
    write = planned(world, item)
    assert write is not None
    return write.status


def condition(found: Mapping[str, Any], kind: str) -> Mapping[str, str]:
    (one,) = (each for each in found["conditions"] if each["type"] == kind)
    return dict(one)


def test_a_tenant_that_uses_nothing_says_so_in_every_field() -> None:
    found = status(World([tenant("chat", 2, 4)], [node("n")]))
    assert (found["guarantee"], found["ceiling"], found["used"]) == ("2", "4", "0")
    assert (found["borrowed"], found["lent"], found["owed"], found["pending"]) == ("0", "0", "0", 0)
    assert "oldestWait" not in found
    assert found["memory"] == {"used": "0Mi"}
    assert found["resources"] == {}


def test_use_past_the_guarantee_is_borrowed_and_what_waits_is_pending_since_its_creation() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    world.run("chat", 3)
    world.now += 60
    world.wait("chat", 2)
    world.now += 60
    world.wait("chat", 2)
    world.plan()

    found = status(world)
    assert (found["used"], found["borrowed"], found["pending"]) == ("3", "1", 2)
    assert found["oldestWait"] == "1970-01-12T13:47:40Z"
    assert found["resources"] == {GPU: {"used": 3}}
    (only,) = found["pools"]
    assert (only["name"], only["used"], only["borrowed"], only["pending"]) == ("", "3", "1", 2)


def test_what_waits_within_the_guarantee_and_has_no_room_is_owed() -> None:
    world = World([tenant("chat", 4, 8)], [node("n", 2)])
    world.run("chat", 1)
    world.wait("chat", 2, many=3)
    world.plan()
    assert status(world)["owed"] == "3"


def test_what_others_borrow_of_an_idle_guarantee_is_lent() -> None:
    at_once = Lending(idle_after_seconds=0)
    world = World(
        [
            tenant("chat", 4, cohort="main", lending=at_once),
            tenant("research", 0, cohort="main"),
        ],
        [node("n", 4)],
    )
    world.idle(60)
    world.run("research", 3)
    assert status(world)["lent"] == "3"
    assert status(world, chat(name="research"))["borrowed"] == "3"


def test_pools_are_told_apart_and_summed_above() -> None:
    world = World(
        [tenant("chat", pools={"": (1, 2), "h100": (4, 8)})],
        [node("a"), node("b", gpu="h100")],
        pools={"h100": pool("h100", gpu="h100")},
    )
    world.run("chat", 2, selector={"gpu": "h100"})
    found = status(world)
    assert (found["guarantee"], found["ceiling"], found["used"]) == ("5", "10", "2")
    assert [(each["name"], each["used"]) for each in found["pools"]] == [("", "0"), ("h100", "2")]


def test_a_ceiling_of_memory_or_devices_stands_beside_what_is_used() -> None:
    world = World([tenant("chat", 2, 4, memory_mib=4096, resources={GPU: 9})], [node("n")])
    found = status(world)
    assert found["memory"] == {"used": "0Mi", "ceiling": "4096Mi"}
    assert found["resources"] == {GPU: {"used": 0, "ceiling": 9}}


def test_an_object_whose_tenant_is_no_more_goes_on_telling_what_is_used() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    (pod,) = world.run("chat", 2)
    world.set_tenants([])
    found = status(world)
    assert (found["used"], found["guarantee"], "ceiling" in found) == ("2", "0", False)
    assert condition(found, "OddPods")["message"].startswith("1 pod in a namespace that belongs")
    world.end(pod)
    assert status(world, chat(found))["used"] == "0"


def test_a_status_that_says_it_all_is_not_written_again() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    world.state.tick(world.now)
    found = status(world)
    world.now += 5
    world.state.tick(world.now)
    assert planned(world, chat(found)) is None


def test_a_past_leaders_late_write_is_written_over() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    found = status(world)
    assert planned(world, chat({**found, "used": "3"})) is not None
    assert planned(world, chat({**found, "oldestWait": SINCE})) is not None


def test_what_stands_idle_is_written_once_a_minute_and_inherited_by_the_next_leader() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    world.idle(60)
    found = status(world)
    world.now += 30
    world.state.tick(world.now)
    assert planned(world, chat(found)) is None
    world.now += 30
    world.state.tick(world.now)
    found = status(world, chat(found))

    after = World([tenant("chat", 2, 4)], [node("n")])
    after.now = world.now
    inherit(after.state, {"metadata": FRESH, "status": found})
    after.idle(1680)
    assert after.state.history(after.tenants["chat"], "").peak(after.now) == 0


def test_an_odd_history_is_inherited_as_none() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    odd = [{"pool": "", "peaks": "x"}, {"pool": 3}, None, "x"]
    inherit(world.state, {"metadata": FRESH, "status": {"idle": odd}})
    world.idle(60)
    assert world.state.history(world.tenants["chat"], "").peak(world.now) is None


def test_a_lowered_ceiling_is_a_condition_and_its_time_stays_until_it_ends() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    world.run("chat", 3)
    first = status(world)
    assert condition(first, "OverQuota")["status"] == "False"
    world.now += 100
    world.set_tenants([tenant("chat", 2, 2)])
    lowered = status(world, chat(first))
    over = condition(lowered, "OverQuota")
    assert (over["status"], over["reason"]) == ("True", "OverCeiling")
    assert over["message"] == "uses 3 GPUs, which is more than its ceiling of 2 GPUs"
    world.now += 100
    world.wait("chat", 1)
    world.plan()
    again = status(world, chat(lowered))
    assert condition(again, "OverQuota") == over
    assert condition(again, "OddPods") == condition(first, "OddPods")


def test_guarantees_that_exceed_the_nodes_are_a_condition() -> None:
    world = World([tenant("chat", 6, 8), tenant("other", 4, 8), tenant("poor")], [node("n", 8)])
    short = condition(status(world), "Overcommitted")
    assert short["message"] == "10 GPUs are guaranteed to tenants, and the nodes have 8 GPUs"
    assert condition(status(world, chat(name="poor")), "Overcommitted")["status"] == "False"


def test_pods_that_skipped_the_gate_are_counted_in_a_condition() -> None:
    world = World([tenant("chat", 6, 8)], [node("n", 8)])
    pods = world.wait("chat", 1, many=2)
    for pod in pods:
        world.state.put_pod(replace(pod, phase=Phase.LIVE, node="n"))
    odd = condition(status(world), "OddPods")
    assert (odd["status"], odd["reason"]) == ("True", "SkippedGate")
    assert odd["message"] == "2 pods with GPUs that were never charged (SkippedGate)"
    world.end(*pods)
    assert condition(status(world), "OddPods")["status"] == "False"


def test_the_fields_of_others_are_neither_read_nor_written() -> None:
    world = World([tenant("chat", 2, 4)], [node("n")])
    world.state.put_namespace(NamespaceFacts("chat", {}))
    found = status(world)
    accepted = {"type": "Accepted", "status": "True"}
    theirs = {**found, "source": "API", "conditions": [accepted, *found["conditions"]]}
    assert planned(world, chat(theirs)) is None
    assert {"source", "observedGeneration"} & found.keys() == set()


def test_remembered_figures_are_those_of_a_fresh_look() -> None:
    at_once = Lending(idle_after_seconds=0)
    names = ("chat", "lab", "ops")
    tenants = [tenant(name, 2, 6, cohort="main", lending=at_once) for name in names]
    world = World(tenants, [node("n", 8)])
    standings, before = Standings(), dict[str, object]()
    for step in range(40):
        world.now += 7
        if step % 5 == 4:
            world.end(*list(world.state.pods())[: step % 4])
        elif step % 11 == 10:
            world.set_tenants([tenant(name, 2, step % 7, cohort="main") for name in names])
        else:
            world.wait(names[step % 3], step % 3 + 1)
        world.act()
        found = standings.look(world.state, world.now)
        assert found == figures(world.state, world.now)
        if step == 39:
            assert standings.look(world.state, world.now) == found
        before = dict(found)
    assert all(standings.look(world.state, world.now)[name] is before[name] for name in names)


def test_what_was_looked_at_is_looked_at_again_only_if_something_has_changed() -> None:
    world, plan = World([tenant("chat", 2, 4)], [node("n")]), StatusPlan()
    world.state.tick(world.now)
    standings = Standings()
    (first,) = plan.writes(world.state, standings.look(world.state, world.now), [chat()], world.now)
    said = chat(first.status)
    for _ in range(3):
        standing = standings.look(world.state, world.now)
        assert plan.writes(world.state, standing, [said], world.now) == ()
    undone = chat({**first.status, "used": "7"})
    assert plan.writes(world.state, standing, [undone], world.now) != ()
    world.now += 61
    world.state.tick(world.now)
    standing = standings.look(world.state, world.now)
    assert plan.writes(world.state, standing, [said], world.now) != ()
