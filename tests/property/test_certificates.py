# SPDX-License-Identifier: Apache-2.0
"""No rotation fails a handshake, and whatever is done to the objects, they become whole again."""

import base64
import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from certs.issue import issue_authority
from certs.pem import certificates_pem
from reconciler.certificates.plan import plan
from tests.support.certificate_world import INSTALLED, KINDS, Object, World

DAY = 86400.0
STRANGER = issue_authority(datetime(2031, 1, 1, tzinfo=UTC)).certificate

Act = Callable[[World], None]


def _ask(name: str) -> Act:
    def annotate(item: Object) -> None:
        item["metadata"].setdefault("annotations", {})["sluice.dev/rotate"] = "now"

    return lambda world: world.edit(name, annotate)


def _lead(seconds: float) -> Act:
    return lambda world: world.lead(seconds, step=max(10.0, seconds / 12))


def _away(days: float) -> Act:
    return lambda world: world.pass_time(days * DAY)


def _lose(*keys: str) -> Act:
    def lose(world: World) -> None:
        for key in keys:
            world.remove(key)
        world.lead(60)

    return lose


peaceful: st.SearchStrategy[Act] = st.one_of(
    st.sampled_from(
        [_ask(INSTALLED.secret), _ask(INSTALLED.authority), World.replace_leader, World.act]
    ),
    st.sampled_from([10.0, 40.0, 120.0, 3600.0, 5 * DAY, 30 * DAY]).map(_lead),
    st.sampled_from([0.0005, 1.0, 20.0, 44.0, 100.0, 400.0]).map(_away),
)


losses: st.SearchStrategy[Act] = st.sampled_from(
    [_lose(INSTALLED.secret), _lose(INSTALLED.authority), _lose(*KINDS)]
)


@given(st.lists(st.one_of(peaceful, losses), max_size=14))
@settings(max_examples=60)
def test_every_leaf_that_was_ever_given_out_is_trusted_until_it_ends(acts: list[Act]) -> None:
    world = World()
    world.install()
    world.lead()
    assert world.is_served()
    for act in acts:
        if not world.is_served():
            # The leader was away until everything had ended. It begins anew, with nothing to lose.
            world.checks = False
            world.lead()
            world.forget()
        world.checks = True
        act(world)
        world.look()
        assert world.failed + world.failing() == []


def _set(name: str, key: str, value: bytes | None) -> Act:
    def change(item: Object) -> None:
        data = item.setdefault("data", {})
        if value is None:
            data.pop(key, None)
        else:
            data[key] = base64.b64encode(value).decode()

    return lambda world: world.edit(name, change)


def _bundle(kind: str, value: bytes) -> Act:
    def change(item: Object) -> None:
        item["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(value).decode()

    return lambda world: world.edit(kind, change)


def _reinstall(world: World) -> None:
    for kind in KINDS:
        world.remove(kind)
    world.install()


def _swap(world: World) -> None:
    """Put the key of the one Secret into the other, as somebody might who copies by hand."""
    authority, serving = (world.objects.get(n) for n in (INSTALLED.authority, INSTALLED.secret))
    if authority and serving and "tls.key" in serving.get("data", {}):
        value = base64.b64decode(serving["data"]["tls.key"])
        _set(INSTALLED.authority, "ca.key", value)(world)


_KEYS = {
    INSTALLED.authority: ("ca.crt", "ca.key", "coming.crt", "coming.key", "retired.crt"),
    INSTALLED.secret: ("ca.crt", "tls.crt", "tls.key"),
}
_VALUES = (None, b"", b"nonsense", certificates_pem((STRANGER,)))
tampering: st.SearchStrategy[Act] = st.one_of(
    st.sampled_from([*_KEYS, *KINDS]).map(lambda key: lambda world: world.remove(key)),
    st.sampled_from([(name, key) for name, keys in _KEYS.items() for key in keys]).flatmap(
        lambda place: st.sampled_from(_VALUES).map(lambda value: _set(*place, value))
    ),
    st.tuples(st.sampled_from(KINDS), st.sampled_from(_VALUES[1:])).map(
        lambda change: _bundle(change[0], change[1] or b"")
    ),
    st.sampled_from([-400.0, -3.0, -0.01, 0.01, 3.0, 100.0, 400.0]).map(
        lambda days: lambda world: world.set_clock(timedelta(days=days))
    ),
    st.sampled_from([_reinstall, _swap]),
)


@given(st.lists(st.one_of(peaceful, tampering), max_size=12))
@settings(max_examples=60)
def test_whatever_was_done_a_leader_makes_it_whole_within_minutes(acts: list[Act]) -> None:
    world = World()
    world.install()
    for act in acts:
        act(world)
    world.lead(180)
    assert world.is_served()
    assert plan(world.picture()) == ()


@given(
    st.lists(st.one_of(peaceful, tampering), max_size=6),
    st.sampled_from([*_KEYS, *KINDS]),
    st.booleans(),
)
@settings(max_examples=60)
def test_what_others_manage_is_never_written_and_nothing_else_is_either(
    acts: list[Act], key: str, is_injected: bool
) -> None:
    world = World()
    world.install()
    world.lead()

    def hand_over(item: Object) -> None:
        metadata = item["metadata"]
        name = "inject-ca-from" if key in KINDS else "certificate-name"
        if is_injected:
            metadata.setdefault("annotations", {})[f"cert-manager.io/{name}"] = "sluice/x"
        else:
            metadata["labels"] = {}

    world.edit(key, hand_over)
    uid = world.objects[key]["metadata"]["uid"]
    for act in acts:
        if world.objects.get(key, {}).get("metadata", {}).get("uid") != uid:
            return  # another object by now, which nobody has handed over
        before = copy.deepcopy(world.objects)
        world.lead(60)
        assert world.objects == before
        act(world)
