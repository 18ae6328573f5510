# SPDX-License-Identifier: Apache-2.0
"""Lists and events in, changes out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.errors import MalformedAnswerError
from reconciler.kube.store import Change, Key, Store, parse_version
from reconciler.kube.stream import EventType, WatchEvent


@dataclass(frozen=True, slots=True)
class Seen:
    uid: str
    value: str


A, B = Key("team", "a"), Key("team", "b")


def view(item: Mapping[str, Any]) -> Seen | None:
    return Seen(item["metadata"]["uid"], item["value"]) if item["value"] != "dull" else None


def thing(name: str, version: int, value: str = "x", uid: str = "") -> dict[str, Any]:
    metadata = {"namespace": "team", "name": name, "uid": uid or f"uid-{name}"}
    return {"metadata": {**metadata, "resourceVersion": str(version)}, "value": value}


def event(kind: str, item: Mapping[str, Any]) -> WatchEvent:
    return WatchEvent(EventType(kind), item)


def listed(*items: Mapping[str, Any], version: int = 100) -> Store[Seen]:
    store = Store(view)
    relist(store, *items, version=version)
    return store


def relist(store: Store[Seen], *items: Mapping[str, Any], version: int) -> list[Change[Seen]]:
    draft = store.draft()
    for item in items:
        draft.add(item)
    return list(store.replace(draft, version))


def test_an_added_object_appears() -> None:
    store = listed()
    assert store.apply(event("ADDED", thing("a", 101))) == [Change(A, None, Seen("uid-a", "x"))]
    assert (store.get(A), store.version, len(store)) == (Seen("uid-a", "x"), "101", 1)


def test_a_change_carries_old_and_new() -> None:
    store = listed(thing("a", 90))
    changes = store.apply(event("MODIFIED", thing("a", 101, "y")))
    assert changes == [Change(A, Seen("uid-a", "x"), Seen("uid-a", "y"))]


def test_a_change_that_the_view_does_not_show_is_none_but_moves_the_version() -> None:
    store = listed(thing("a", 90))
    before = store.get(A)
    assert store.apply(event("MODIFIED", thing("a", 101))) == []
    assert store.get(A) is before
    assert store.version == "101"


def test_a_deleted_object_goes() -> None:
    store = listed(thing("a", 90))
    assert store.apply(event("DELETED", thing("a", 101))) == [Change(A, Seen("uid-a", "x"), None)]
    assert store.get(A) is None
    assert len(store) == 0


def test_an_object_of_no_interest_is_not_kept() -> None:
    store = listed(thing("a", 90, "dull"))
    assert store.apply(event("ADDED", thing("b", 101, "dull"))) == []
    assert store.values() == ()


def test_an_object_that_loses_interest_goes_and_comes_back() -> None:
    store = listed(thing("a", 90))
    x = Seen("uid-a", "x")
    assert store.apply(event("MODIFIED", thing("a", 101, "dull"))) == [Change(A, x, None)]
    assert store.apply(event("MODIFIED", thing("a", 102))) == [Change(A, None, x)]


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize("version", [101, 105])
def test_an_older_or_repeated_event_of_an_object_changes_nothing(kind: str, version: int) -> None:
    store = listed()
    store.apply(event("ADDED", thing("a", 105, "new")))
    assert store.apply(event(kind, thing("a", version, "old"))) == []
    assert store.get(A) == Seen("uid-a", "new")


def test_a_replay_does_not_bring_back_what_was_deleted() -> None:
    store = listed(thing("a", 90))
    store.apply(event("DELETED", thing("a", 105)))
    assert store.apply(event("MODIFIED", thing("a", 104))) == []
    assert store.apply(event("ADDED", thing("a", 90))) == []
    assert store.get(A) is None


def test_versions_are_compared_as_numbers_not_as_text() -> None:
    store = listed(thing("a", 99))
    store.apply(event("MODIFIED", thing("a", 1000, "new")))
    assert store.get(A) == Seen("uid-a", "new")
    assert store.apply(event("MODIFIED", thing("a", 999, "old"))) == []


def test_a_new_uid_under_an_old_name_is_a_deletion_and_an_addition() -> None:
    store = listed(thing("a", 90, "4", "uid-1"))
    assert store.apply(event("MODIFIED", thing("a", 130, "1", "uid-2"))) == [
        Change(A, Seen("uid-1", "4"), None),
        Change(A, None, Seen("uid-2", "1")),
    ]


def test_a_late_deletion_of_the_old_uid_changes_nothing() -> None:
    store = listed(thing("a", 90, "4", "uid-1"))
    store.apply(event("MODIFIED", thing("a", 130, "1", "uid-2")))
    assert store.apply(event("DELETED", thing("a", 131, "4", "uid-1"))) == []
    assert store.get(A) == Seen("uid-2", "1")
    assert store.version == "131"


def test_a_new_uid_of_no_interest_is_a_deletion() -> None:
    store = listed(thing("a", 90, "4", "uid-1"))
    changes = store.apply(event("MODIFIED", thing("a", 130, "dull", "uid-2")))
    assert changes == [Change(A, Seen("uid-1", "4"), None)]


def test_a_bookmark_moves_the_version_only() -> None:
    store = listed(thing("a", 90))
    bookmark = {"metadata": {"resourceVersion": "150", "creationTimestamp": None}}
    assert store.apply(event("BOOKMARK", bookmark)) == []
    assert (store.version, len(store)) == ("150", 1)


def test_an_old_bookmark_does_not_move_the_version_back() -> None:
    store = listed(version=100)
    store.apply(event("BOOKMARK", {"metadata": {"resourceVersion": "50"}}))
    assert store.version == "100"


def test_what_a_new_list_lacks_was_deleted() -> None:
    store = listed(thing("a", 90), thing("b", 91))
    assert relist(store, thing("a", 90), version=9000) == [Change(B, Seen("uid-b", "x"), None)]
    assert store.version == "9000"


def test_a_new_list_tells_additions_changes_and_replacements_after_deletions() -> None:
    store = listed(thing("a", 90), thing("b", 91), thing("c", 92))
    changes = relist(
        store, thing("d", 200), thing("a", 201, "y"), thing("b", 202, uid="uid-b2"), version=300
    )
    assert changes == [
        Change(Key("team", "c"), Seen("uid-c", "x"), None),
        Change(Key("team", "d"), None, Seen("uid-d", "x")),
        Change(A, Seen("uid-a", "x"), Seen("uid-a", "y")),
        Change(B, Seen("uid-b", "x"), None),
        Change(B, None, Seen("uid-b2", "x")),
    ]


def test_a_list_older_than_what_was_seen_is_the_truth() -> None:
    """Etcd was restored from a backup: its versions went back."""
    store = listed(thing("a", 5000, "late"), version=5000)
    relist(store, thing("a", 90, "early"), version=100)
    assert (store.get(A), store.version) == (Seen("uid-a", "early"), "100")
    assert store.apply(event("MODIFIED", thing("a", 101, "next"))) != []


def test_a_list_that_was_not_finished_changes_nothing() -> None:
    store = listed(thing("a", 90))
    store.draft().add(thing("b", 91))
    assert store.values() == (Seen("uid-a", "x"),)


@pytest.mark.parametrize("value", [None, "", "0", "None", "-1", "1.5", " 7", "07", "٣", 7, []])
def test_what_is_no_version_is_refused(value: object) -> None:
    with pytest.raises(MalformedAnswerError, match="not a resourceVersion"):
        parse_version(value)


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"metadata": None},
        {"metadata": {"resourceVersion": "7"}},
        {"metadata": {"name": "", "resourceVersion": "7"}},
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "a", "resourceVersion": "None"}},
    ],
)
def test_an_object_without_name_or_version_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(MalformedAnswerError):
        listed().apply(event("ADDED", item))
    with pytest.raises(MalformedAnswerError):
        listed().draft().add(item)


def test_cluster_scoped_objects_have_no_namespace() -> None:
    store = Store(view)
    item = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7"}, "value": "x"}
    store.apply(event("ADDED", item))
    assert store.get(Key("", "n")) == Seen("u", "x")


def test_the_view_alone_decides_what_is_kept() -> None:
    """Raw objects, managedFields above all, are not held by the store."""
    store = Store(len)
    item = {**thing("a", 101), "metadata": {**thing("a", 101)["metadata"], "managedFields": [1]}}
    store.apply(event("ADDED", item))
    assert store.values() == (2,)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "recreate"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["x", "y", "dull"]),
        st.booleans(),
    ),
    max_size=40,
)


@given(steps=STEPS, data=st.data())
def test_the_store_ends_true_whatever_is_missed_collapsed_or_replayed(
    steps: list[tuple[str, str, str, bool]], data: st.DataObject
) -> None:
    """Events are replayed at will; where some were missed a new list follows, as after a 410."""
    truth: dict[str, dict[str, Any]] = {}
    store, told, history, version = listed(), dict[Key, Seen](), list[WatchEvent](), 100
    for action, name, value, is_missed in steps:
        version += 1
        happened = _happen(truth, action, name, value, version)
        if happened is None:
            continue
        if is_missed:
            changes = relist(store, *truth.values(), version=version)
        else:
            changes = store.apply(happened)
            history.append(happened)
        for replayed in (
            data.draw(st.lists(st.sampled_from(history), max_size=3)) if history else []
        ):
            changes += store.apply(replayed)
        for change in changes:
            assert told.get(change.key) == change.old
            if change.new is None:
                del told[change.key]
            else:
                told[change.key] = change.new
    expected = {
        Key("team", name): seen for name, item in truth.items() if (seen := view(item)) is not None
    }
    assert told == expected
    assert {key: store.get(key) for key in expected} == expected
    assert len(store) == len(expected)


def _happen(
    truth: dict[str, dict[str, Any]], action: str, name: str, value: str, version: int
) -> WatchEvent | None:
    old = truth.get(name)
    if action == "delete":
        if old is None:
            return None
        del truth[name]
        return event("DELETED", thing(name, version, old["value"], old["metadata"]["uid"]))
    uid = old["metadata"]["uid"] if old and action == "put" else f"uid-{version}"
    truth[name] = thing(name, version, value, uid)
    return event("MODIFIED" if old else "ADDED", truth[name])
