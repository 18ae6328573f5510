# SPDX-License-Identifier: Apache-2.0
"""What a list and the watch after it have shown: one small view per object, and what changed.

Pure: lists and events in, changes out, in the order that they must take effect. Raw objects are
dropped at once, managedFields and all; the view function takes what is needed. Connections and
time are not here.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from reconciler.kube.errors import MalformedAnswerError
from reconciler.kube.stream import EventType, WatchEvent

T = TypeVar("T")
View = Callable[[Mapping[str, object]], T | None]
"""Makes a frozen view of a raw object; None for one that is of no interest."""

_VERSION: Final = re.compile(r"[1-9][0-9]*", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """An object's place within its collection; `namespace` is empty for cluster-scoped ones."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One step of one object: it appeared (`old` is None), changed, or went (`new` is None)."""

    key: Key
    old: T | None
    new: T | None


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    uid: str
    version: int
    view: T


@dataclass(frozen=True, slots=True)
class _Identity:
    key: Key
    uid: str
    version: int


def parse_version(value: object) -> int:
    """Return a resourceVersion as the number that it is; a larger one is newer.

    Raises MalformedAnswerError for a missing one, "", "0" and the like, which no watch may use.
    Source: Kubernetes API concepts, "Resource versions" (comparable since 1.35, KEP-5504).
    """
    if not isinstance(value, str) or _VERSION.fullmatch(value) is None:
        raise MalformedAnswerError(f"{value!r} is not a resourceVersion to go on from")
    return int(value)


class Store(Generic[T]):
    """Views by key. An object of no interest is not kept at all."""

    def __init__(self, view: View[T]) -> None:
        self._view = view
        self._entries: dict[Key, _Entry[T]] = {}
        self._version = 0

    @property
    def version(self) -> str:
        """The resourceVersion up to which everything is in here: where a watch goes on from."""
        return str(self._version)

    def get(self, key: Key) -> T | None:
        """Return the view of an object, None where there is none."""
        entry = self._entries.get(key)
        return entry.view if entry else None

    def values(self) -> tuple[T, ...]:
        """Return all views, in no particular order."""
        return tuple(entry.view for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def draft(self) -> "Draft[T]":
        """Return an empty list to fill page by page and then hand to `replace`."""
        return Draft(self._view)

    def replace(self, draft: "Draft[T]", version: int) -> Iterator[Change[T]]:
        """Take a complete list as the truth: what it lacks was deleted, unseen by any watch.

        Versions held before do not count: after a restore of etcd the list is older than they are.
        It is the truth at once; the changes are worked out as they are asked for, so that whoever
        publishes them may pause, and before anything else is applied.
        """
        before, self._entries, self._version = self._entries, draft.entries, version
        return _differences(before, self._entries)

    def apply(self, event: WatchEvent) -> list[Change[T]]:
        """Take one watch event; a replayed, late or repeated one changes nothing.

        Raises MalformedAnswerError for an object that lacks a name or version.
        """
        if event.type is EventType.BOOKMARK:
            self._version = max(
                self._version, parse_version(_metadata(event.object).get("resourceVersion"))
            )
            return []
        identity = _identify(event.object)
        known = self._entries.get(identity.key)
        # The stream is in order, so for an object not held, all up to the newest seen is old.
        newest = known.version if known else self._version
        if identity.version <= newest:
            return []
        self._version = max(self._version, identity.version)
        if event.type is EventType.DELETED:
            return self._remove(identity.key, known) if known and known.uid == identity.uid else []
        return self._put(identity, known, self._view(event.object))

    def _put(self, identity: _Identity, known: _Entry[T] | None, view: T | None) -> list[Change[T]]:
        if view is None:
            return self._remove(identity.key, known) if known else []
        if known and known.uid == identity.uid and known.view == view:
            view = known.view
        entry = _Entry(identity.uid, identity.version, view)
        self._entries[identity.key] = entry
        return _steps(identity.key, known, entry)

    def _remove(self, key: Key, known: _Entry[T]) -> list[Change[T]]:
        del self._entries[key]
        return [Change(key, known.view, None)]


class Draft(Generic[T]):
    """A list that is being read; nobody sees it before it is whole."""

    def __init__(self, view: View[T]) -> None:
        self._view = view
        self.entries: dict[Key, _Entry[T]] = {}

    def add(self, item: Mapping[str, object]) -> None:
        """Add an object. Raises MalformedAnswerError for one that lacks a name or version."""
        identity = _identify(item)
        view = self._view(item)
        if view is not None:
            self.entries[identity.key] = _Entry(identity.uid, identity.version, view)


def _differences(
    before: Mapping[Key, _Entry[T]], after: Mapping[Key, _Entry[T]]
) -> Iterator[Change[T]]:
    for key, entry in before.items():
        if key not in after:
            yield Change(key, entry.view, None)
    for key, entry in after.items():
        yield from _steps(key, before.get(key), entry)


def _steps(key: Key, old: _Entry[T] | None, new: _Entry[T]) -> list[Change[T]]:
    if old is None:
        return [Change(key, None, new.view)]
    if old.uid != new.uid:
        # Deleted and made again between two looks: never a change of the old object.
        return [Change(key, old.view, None), Change(key, None, new.view)]
    return [] if old.view == new.view else [Change(key, old.view, new.view)]


def _identify(item: Mapping[str, object]) -> _Identity:
    metadata = _metadata(item)
    name, namespace, uid = (metadata.get(field) for field in ("name", "namespace", "uid"))
    if not isinstance(name, str) or not name:
        raise MalformedAnswerError("an object without a name")
    key = Key(sys.intern(namespace) if isinstance(namespace, str) else "", name)
    version = parse_version(metadata.get("resourceVersion"))
    return _Identity(key, uid if isinstance(uid, str) else "", version)


def _metadata(item: Mapping[str, object]) -> Mapping[str, object]:
    metadata = item.get("metadata")
    if not isinstance(metadata, Mapping):
        raise MalformedAnswerError("an object without metadata")
    return metadata
