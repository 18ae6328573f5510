# SPDX-License-Identifier: Apache-2.0
"""The laws of reclaim on clusters of any kind, checked with arithmetic of the tests' own."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.quota.pods import QuotaPod
from policies.quota.reclaim.outcome import Notify, ReclaimPlan
from policies.quota.reclaim.snapshot import Snapshot
from policies.quota.reclaim.units import KnownUnits
from reconciler.reclaim.plan import plan_reclaim
from tests.support.reclaiming import GPU, NOW, Scene, gang, notice, shape

OWNER = "ann"
BORROWERS = ("bob", "cyd")
TENANTS = (OWNER, *BORROWERS)
GUARANTEES = {OWNER: st.integers(4, 16), **dict.fromkeys(BORROWERS, st.integers(0, 3))}


@st.composite
def scenes(draw: st.DrawFn, sizes: tuple[int, ...] = (1, 2, 4)) -> Scene:
    """A few nodes, packed at random with pods of three tenants; some pods wait."""
    made = Scene()
    for n in range(draw(st.integers(1, 4))):
        made.node(f"n{n}", draw(st.integers(1, 8)), zone=draw(st.sampled_from("ab")))
    for name in TENANTS:
        made.tenant(
            name,
            gpus=draw(GUARANTEES[name]),
            priority=draw(st.integers(0, 1)),
            cohort=draw(st.sampled_from(["main"] * 5 + ["other"])),
        )
    for node in made.nodes:
        free = node.allocatable[GPU]
        while (fitting := [size for size in sizes if size <= free]) and draw(st.integers(0, 9)) > 0:
            count = draw(st.sampled_from(fitting))
            free -= count
            tenant = draw(st.sampled_from(BORROWERS * 3 + (OWNER,)))
            made.running(tenant, f"{node.name}-{free}", node.name, gpus=count, **draw(extras()))
    for n in range(draw(st.integers(1, 4))):
        waiting = draw(waits(sizes))
        names = [f"w{n}-{i}" for i in range(waiting.pop("count"))]
        made.wait(waiting.pop("tenant"), *names, **waiting)
    return made


@st.composite
def extras(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {
        "age": draw(st.integers(1, 9)),
        "priority": draw(st.integers(0, 1)),
        "reclaimable": draw(st.integers(0, 6)) > 0,
    }
    if draw(st.integers(0, 4)) == 0:
        found["deleted_at"] = NOW + draw(st.sampled_from([5, 10**6]))
    if draw(st.integers(0, 3)) == 0:
        # One namespace, so that gangs span nodes.
        found["gang"] = gang(draw(st.sampled_from("xyz")), draw(st.sampled_from([None, 1, 2, 3])))
    return found


@st.composite
def waits(draw: st.DrawFn, sizes: tuple[int, ...]) -> dict[str, Any]:
    gpus = draw(st.sampled_from(sizes))
    zone = draw(st.sampled_from([None, None, "a"]))
    return {
        "tenant": draw(st.sampled_from((OWNER, OWNER, OWNER, *BORROWERS))),
        "count": draw(st.sampled_from([1, 1, 1, 2, 3])),
        "gpus": gpus,
        "shape": shape(gpus, {"zone": zone} if zone else None),
    }


@dataclass
class Outcome:
    """A plan with what the tests reckon themselves of it."""

    snapshot: Snapshot
    plan: ReclaimPlan

    @property
    def victims(self) -> Mapping[str, str]:
        assert self.plan.victims is not None
        return self.plan.victims

    def pods(self) -> Iterator[tuple[str, QuotaPod]]:
        for (tenant, _), held in self.snapshot.live.items():
            for pod, _ in held:
                yield tenant, pod

    def free(self, without: Iterable[str]) -> dict[str, int]:
        """GPUs that are free on each node once these and who is about to end are gone."""
        free = {node.name: node.allocatable[GPU] for node in self.snapshot.nodes.values()}
        for _, pod in self.pods():
            ends = pod.deleted_at is not None and pod.deleted_at < NOW + 60
            if pod.uid not in without and not ends:
                free[pod.node] -= pod.shape.gpus[GPU]
        return free

    def placed(self) -> list[tuple[QuotaPod, str]]:
        """Who waits and got a place, and where."""
        places = {uid: node for r in self.plan.reservations for uid, node in r.places.items()}
        members = [m.pod for group in self.snapshot.waiting for m in group.members]
        return [(pod, places[pod.uid]) for pod in members if pod.uid in places]

    def units(self) -> list[set[str]]:
        """Sets of victims that only go together: gangs, except for a surplus alone."""
        gangs: dict[tuple[str, str, str], set[str]] = {}
        live: Counter[tuple[str, str, str]] = Counter()
        singles: list[set[str]] = []
        for tenant, pod in self.pods():
            if pod.deleted_at is not None:
                continue
            if pod.gang is None:
                if pod.uid in self.victims:
                    singles.append({pod.uid})
                continue
            key = (tenant, pod.namespace, pod.gang.name)
            live[key] += 1
            if pod.uid in self.victims:
                gangs.setdefault(key, set()).add(pod.uid)
        for key, uids in gangs.items():
            if len(uids) == live[key]:
                singles.append(uids)
            else:
                singles += [{uid} for uid in uids]
        return singles


def outcome(made: Scene) -> Outcome:
    snapshot = made.snapshot()
    return Outcome(snapshot, plan_reclaim(snapshot))


@given(scenes())
def test_no_reclaim_leaves_a_tenant_below_its_guarantee(made: Scene) -> None:
    found = outcome(made)
    for (tenant, _), entitlement in found.snapshot.entitlements.items():
        lost = sum(
            pod.shape.gpus[GPU]
            for owner, pod in found.pods()
            if owner == tenant and pod.uid in found.victims
        )
        if lost:
            assert entitlement.used.milli - 1000 * lost >= entitlement.guarantee_milli


@given(scenes())
def test_nothing_that_may_not_be_taken_back_is_ever_among_the_victims(made: Scene) -> None:
    found = outcome(made)
    for _, pod in found.pods():
        if pod.uid in found.victims:
            assert pod.charge is not None
            assert pod.charge.reclaimable
            assert pod.deleted_at is None


@given(scenes())
def test_every_victim_has_a_beneficiary_within_its_guarantee_that_fits(made: Scene) -> None:
    found = outcome(made)
    got = {group.name: group for group in found.snapshot.waiting}
    reserved = {r.group for r in found.plan.reservations}
    assert set(found.victims.values()) <= reserved
    free = found.free(without=found.victims)
    for pod, node in found.placed():
        free[node] -= pod.shape.gpus[GPU]
        selector = dict(pod.shape.constraints.node_selector)
        assert selector.items() <= found.snapshot.nodes[node].labels.items()
    assert all(count >= 0 for count in free.values())
    for name in reserved:
        assert {m.pod.uid for m in got[name].members} <= {pod.uid for pod, _ in found.placed()}
    for tenant in TENANTS:
        entitlement = found.snapshot.entitlements[(tenant, "")]
        given_ = sum(
            m.amount.milli for g in reserved if got[g].tenant == tenant for m in got[g].members
        )
        if given_:
            assert entitlement.used.milli + given_ <= entitlement.guarantee_milli


@given(scenes())
def test_only_the_same_cohort_gives_and_nobody_to_itself(made: Scene) -> None:
    found = outcome(made)
    tenants = {group.name: group.tenant for group in found.snapshot.waiting}
    cohorts = {key[0]: e.cohort for key, e in found.snapshot.entitlements.items()}
    for tenant, pod in found.pods():
        if pod.uid in found.victims:
            getter = tenants[found.victims[pod.uid]]
            assert getter != tenant
            assert cohorts[getter] == cohorts[tenant]


def can_place(pods: list[QuotaPod], free: dict[str, int], found: Outcome) -> bool:
    """Try every way to place pods."""
    if not pods:
        return True
    pod, rest = pods[0], pods[1:]
    selector = dict(pod.shape.constraints.node_selector)
    for node, count in free.items():
        if count < pod.shape.gpus[GPU]:
            continue
        if not selector.items() <= found.snapshot.nodes[node].labels.items():
            continue
        if can_place(rest, {**free, node: count - pod.shape.gpus[GPU]}, found):
            return True
    return False


@given(scenes(sizes=(1,)))
def test_without_any_one_victim_the_plan_would_not_be_enough(made: Scene) -> None:
    found = outcome(made)
    placed = [pod for pod, _ in found.placed()]
    for unit in found.units():
        assert not can_place(placed, found.free(without=found.victims.keys() - unit), found), unit


@given(scenes())
def test_gangs_go_whole_or_give_their_surplus(made: Scene) -> None:
    found = outcome(made)
    live: Counter[tuple[str, str]] = Counter()
    gone: Counter[tuple[str, str]] = Counter()
    sizes: dict[tuple[str, str], set[int | None]] = {}
    for _, pod in found.pods():
        if pod.gang is not None and pod.deleted_at is None:
            key = (pod.namespace, pod.gang.name)
            live[key] += 1
            gone[key] += pod.uid in found.victims
            sizes.setdefault(key, set()).add(pod.gang.size)
    for key, count in gone.items():
        if count and count < live[key]:
            (size,) = sizes[key]
            assert size is not None
            assert live[key] - count >= size


@given(scenes())
def test_the_same_snapshot_gives_the_same_plan(made: Scene) -> None:
    assert outcome(made).plan == outcome(made).plan


@given(scenes())
def test_each_pod_gets_one_command_at_most(made: Scene) -> None:
    uids = Counter(command.pod.uid for command in outcome(made).plan.commands)
    assert all(count == 1 for count in uids.values())


@given(scenes())
def test_nobody_is_evicted_without_a_notice(made: Scene) -> None:
    for command in outcome(made).plan.commands:
        assert isinstance(command, Notify)


@given(scenes(), st.data())
def test_what_one_plan_leaves_for_the_next_changes_nothing(
    made: Scene, data: st.DataObject
) -> None:
    known = KnownUnits()
    for _ in range(3):
        found = made.snapshot()
        assert plan_reclaim(found, known) == plan_reclaim(found)
        pods = [pod for _, pod in Outcome(found, ReclaimPlan()).pods()]
        if not pods:
            return
        pod = data.draw(st.sampled_from(pods))
        match data.draw(st.sampled_from(["told", "refused", "costly", "policy", "later"])):
            case "told":
                made.change(pod, notice=notice(NOW - 1))
            case "refused":
                made.refused = {pod.uid: made.now + 1}
            case "costly":
                made.change(pod, eviction_cost=7)
            case "policy":
                for key, entitlement in made.entitlements.items():
                    made.entitlements[key] = replace(entitlement, min_runtime_seconds=5)
            case _:
                made.now += 2
                made.refused = {}
