# SPDX-License-Identifier: Apache-2.0
"""Whatever comes in whatever order, the model ends where a new one would begin."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.placement.filtering import why_refused
from policies.placement.occupancy import Gauge, Occupancy
from tests.controlplane import nodes
from tests.unit.extender.building import READER, WHOLE, Json, World, owned_by, raw_pod, shared
from webhook.extender.wire import Question

_NODES = ("a", "b", "c")
_PODS = tuple(f"p{number}" for number in range(6))
_MIB = (None, 20_000, 60_000)

_STEPS = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(_NODES), st.sampled_from((1, 2, 0))),
    st.tuples(st.just("gone"), st.sampled_from(_NODES), st.just(0)),
    st.tuples(st.just("bound"), st.sampled_from(_PODS), st.sampled_from(range(3))),
    st.tuples(st.just("ended"), st.sampled_from(_PODS), st.just(0)),
    st.tuples(st.just("deleted"), st.sampled_from(_PODS), st.just(0)),
    st.tuples(st.just("asked"), st.sampled_from(_PODS), st.sampled_from(range(3))),
    st.tuples(st.just("measured"), st.sampled_from(_NODES), st.sampled_from((0, 30_000, 80_000))),
    st.tuples(st.just("later"), st.just(""), st.sampled_from((1, 100))),
)


def _pod(name: str) -> Json:
    number = _PODS.index(name)
    resource = WHOLE if number == 0 else "nvidia.com/gpu.shared"
    owner = owned_by("ReplicaSet", f"rs{number % 2}")
    return raw_pod(name, resource, mib=_MIB[number % 3], ownerReferences=owner)


class Played:
    """A world in which steps happen, and what of it is there at the end."""

    def __init__(self) -> None:
        self.world = World()
        self.alive: dict[str, Mapping[str, object]] = {}
        self.bound: dict[str, str] = {}

    def play(self, kind: str, name: str, value: int) -> None:
        model = self.world.model
        match kind:
            case "node":
                raw = shared(name, cards=value) if value else nodes.whole(name, count=2)
                self.alive[name] = raw
                self.world.node(raw)
            case "gone":
                self.alive.pop(name, None)
                model.remove_node(name)
            case "bound" if name not in self.bound:
                self.bound[name] = _NODES[value]
                self.world.bound(_pod(name), _NODES[value], is_in_order=False)
            case "ended":
                self.bound.pop(name, None)
                model.put_pod(READER.read({**_pod(name), "status": {"phase": "Succeeded"}}))
                model.remove_pod(f"uid-{name}")
            case "deleted":
                self.bound.pop(name, None)
                model.remove_pod(f"uid-{name}")
            case "asked" if name not in self.bound:
                question = Question(_pod(name), _NODES[value:])
                self.world.answers.filter(question)
                self.world.answers.prioritize(question)
            case "measured":
                load = 900 if value == 0 else 100
                model.put_gauge(name, Gauge(load, (load,), (value,)))
            case "later":
                self.world.clock.now += value

    def anew(self) -> World:
        """Return a new world with the nodes and pods that are there now."""
        fresh = World()
        for raw in self.alive.values():
            fresh.node(raw)
        for name, node in self.bound.items():
            fresh.bound(_pod(name), node, is_in_order=False)
        return fresh


@settings(max_examples=150)
@given(steps=st.lists(_STEPS, max_size=40))
def test_events_in_any_order_lead_to_what_a_new_model_would_say(
    steps: list[tuple[str, str, int]],
) -> None:
    played = Played()
    for step in steps:
        played.play(*step)
    model, fresh = played.world.model, played.anew().model
    for name in _PODS:
        model.forget(f"uid-{name}")
    for name in _NODES:
        assert _told(model.occupancy(name)) == _told(fresh.occupancy(name))
    assert model.tasks == fresh.tasks
    assert model._signs._services == fresh._signs._services
    assert not model.assumed
    for name in _PODS:
        wish = READER.read(_pod(name)).wish
        # Not of memory: on which card a pod is may differ, and with it how much is free there.
        sieve = model.sieve(wish)
        assert sieve.failed.keys() == fresh.sieve(wish).failed.keys()
        for node in _NODES:
            # What is remembered is what would be found anew, here with memory.
            here = model.occupancy(node)
            anew = why_refused(wish, here) if here is not None else None
            assert sieve.refusals.get(node) == anew


def _told(here: Occupancy | None) -> object:
    """Return all of a node that does not depend on which cards its pods are."""
    if here is None:
        return None
    free = {name: amount for name, amount in here.free.items() if amount}
    return free, here.pods, here.tasks, here.exclusive, +here.forms, here.companies
