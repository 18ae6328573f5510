# SPDX-License-Identifier: Apache-2.0
"""What is typical is learnt beside the answers, which are right at every step of it."""

from collections.abc import Iterator

import pytest

from policies.placement.model import Model
from policies.placement.outlook import Outlooks
from policies.placement.rooms import Room
from tests.unit.extender.building import Json, World, raw_pod, shared

_NAMES = ("a", "b", "c")
_TOLERANT = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}


def _pod(name: str) -> Json:
    return raw_pod(name, spec=_TOLERANT)


def _world(bound: int = 3) -> World:
    world = World()
    for name in _NAMES:
        world.node(shared(name, cards=2))
    for number in range(bound):
        world.bound(_pod(f"p{number}"), "a")
    return world


def _learnt(model: Model) -> None:
    for _ in model.learn():
        pass


def _ranked(world: World) -> tuple[str, ...]:
    wish = world.answers._reader.read(_pod("q")).wish
    found = world.model.rank(wish, _NAMES, "")
    assert found is not None
    return found.order


def _begun(model: Model) -> Iterator[None]:
    learning = model.learn()
    for _ in _NAMES:
        next(learning)
    return learning


def test_learning_is_due_once_pods_have_come() -> None:
    assert not _world(bound=0).model.is_learning_due
    world = _world()
    assert world.model.is_learning_due
    _learnt(world.model)
    assert not world.model.is_learning_due


def test_nothing_is_fragmented_before_anything_was_learnt() -> None:
    world = _world()
    assert world.model.fragmented_milli("a") is None
    _learnt(world.model)
    assert world.model.fragmented_milli("a") == 0


def test_a_node_that_changes_while_learning_goes_on_is_as_it_is_now() -> None:
    world = _world()
    learning = _begun(world.model)
    # Fuller than the first one, so a pod like the others goes there next.
    for number in range(7):
        world.bound(_pod(f"r{number}"), "b")
    for _ in learning:
        pass
    assert _ranked(world)[0] == "b"


def test_a_node_that_goes_while_learning_goes_on_is_not_known_any_more() -> None:
    world = _world()
    learning = _begun(world.model)
    world.model.remove_node("a")
    for _ in learning:
        pass
    assert world.model.fragmented_milli("a") is None
    assert world.model.fragmented_milli("b") == 0


def test_a_node_that_comes_while_learning_goes_on_is_known() -> None:
    world = _world()
    learning = _begun(world.model)
    world.node(shared("d", cards=2))
    for _ in learning:
        pass
    assert world.model.fragmented_milli("d") == 0


def test_what_was_asked_last_is_looked_at_before_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = _world()
    _ranked(world)
    _learnt(world.model)
    looked: list[Room] = []
    monkeypatch.setattr(Outlooks, "_look", lambda _self, room: looked.append(room))
    _ranked(world)
    assert not looked
