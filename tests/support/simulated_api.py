# SPDX-License-Identifier: Apache-2.0
"""The API server of a simulated world, with lists, watches and conditional merge patches.

A call that is abandoned still arrives, watches lag behind and are cut, answers are lost, and
admission may refuse the writes of a pod. It knows no defaults and no validation.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from reconciler.kube.client import Page
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    GoneError,
    NotFoundError,
    SilenceError,
    TimedOutError,
    UnavailableError,
)
from reconciler.kube.resources import PODS, Resource, Selection, Target
from reconciler.kube.stream import EventType, WatchEvent
from tests.support.lease_server import Network
from tests.support.simulated import SimulatedProcess, World

Object = dict[str, Any]
Place = tuple[str, str, str]
"""Plural, namespace, name."""

_CALL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Event:
    version: int
    plural: str
    kind: EventType
    item: Object


@dataclass(eq=False, slots=True)
class _Stream:
    process: SimulatedProcess
    plural: str
    arrived: "asyncio.Queue[WatchEvent | ApiError | None]" = field(default_factory=asyncio.Queue)
    last: float = 0.0
    """When the newest event arrives; none overtakes another."""


class SimulatedApi:
    """The objects and their history."""

    def __init__(self, world: World, network: Network) -> None:
        self.world = world
        self.network = network
        self.version = 100
        self.objects: dict[Place, Object] = {}
        self.admit: Callable[[Object], ApiError | None] = lambda _pod: None
        """Refuses the write of a pod as it was."""
        self.hangs: Callable[[Object], bool] = lambda _pod: False
        """Tells whether a write of a pod is never answered, and never done."""
        self.patched: Callable[[str, Object, Object], None] = lambda _who, _old, _new: None
        """Told who has patched an object, and how."""
        self.watch_lag = (0.0, 0.05)
        self._history: list[_Event] = []
        self._compacted = 0
        self._streams: list[_Stream] = []

    # What the world does.

    def put(self, plural: str, item: Mapping[str, Any]) -> Object:
        """Create or replace an object."""
        metadata = item["metadata"]
        place = (plural, metadata.get("namespace", ""), metadata["name"])
        self.version += 1
        made = _copy(item)
        made["metadata"].setdefault("uid", f"uid-{self.version}")
        made["metadata"]["resourceVersion"] = str(self.version)
        kind = EventType.MODIFIED if place in self.objects else EventType.ADDED
        self.objects[place] = made
        self._tell(_Event(self.version, plural, kind, made))
        return made

    def change(self, place: Place, change: Callable[[Object], None]) -> None:
        """Change an object, if it is there."""
        if place in self.objects:
            item = _copy(self.objects[place])
            change(item)
            self.put(place[0], item)

    def remove(self, place: Place) -> None:
        """Delete an object for good, if it is there."""
        item = self.objects.pop(place, None)
        if item is not None:
            self.version += 1
            last = _copy(item)
            last["metadata"]["resourceVersion"] = str(self.version)
            self._tell(_Event(self.version, place[0], EventType.DELETED, last))

    def all(self, plural: str) -> list[Object]:
        """Return all objects of a kind."""
        return [item for place, item in self.objects.items() if place[0] == plural]

    def compact(self) -> None:
        """Forget the history, so that watches from older versions are refused."""
        self._compacted = self.version
        self._history.clear()

    def cut(self) -> None:
        """Break every watch; what was under way on it is lost."""
        streams, self._streams = self._streams, []
        for stream in streams:
            self._deliver(stream, UnavailableError("connection reset"))

    def _tell(self, event: _Event) -> None:
        self._history.append(event)
        for stream in self._streams:
            if stream.plural == event.plural:
                self._send(stream, event)

    # What clients ask.

    def get(self, place: Place) -> Object:
        if place not in self.objects:
            raise NotFoundError("not found", status=404, reason="NotFound")
        return self.objects[place]

    def merge(self, who: str, place: Place, body: Mapping[str, Any]) -> Object:
        """Apply a merge patch (RFC 7386), conditional on its resourceVersion."""
        now = self.get(place)
        named = body.get("metadata", {}).get("resourceVersion", now["metadata"]["resourceVersion"])
        if named != now["metadata"]["resourceVersion"]:
            raise ConflictError("the object has been modified", status=409)
        error = self.admit(now)
        if error is not None:
            raise error
        merged = _merged(now, body)
        if merged == now:
            return now  # as a server does: no change, no new version
        new = self.put(place[0], merged)
        self.patched(who, now, new)
        return new

    def page(self, plural: str) -> Page:
        return Page(tuple(self.all(plural)), str(self.version), "")

    def open(self, stream: _Stream, version: int) -> None:
        if version < self._compacted:
            raise GoneError("too old resource version", status=410)
        if version > self.version:
            raise GoneError("too large resource version", status=504)
        for event in self._history:
            if event.version > version and event.plural == stream.plural:
                self._send(stream, event)
        self._streams.append(stream)

    def end(self, stream: _Stream) -> None:
        """End a watch in order, with a bookmark."""
        if stream in self._streams:
            item = {"metadata": {"resourceVersion": str(self.version)}}
            self._send(stream, _Event(self.version, stream.plural, EventType.BOOKMARK, item))
            self.world.at(stream.last, partial(self._deliver, stream, None))
            self.close(stream)

    def close(self, stream: _Stream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)

    def _send(self, stream: _Stream, event: _Event) -> None:
        lag = self.network.draw.uniform(*self.watch_lag)
        stream.last = max(stream.last, self.world.now + lag)
        arrives = WatchEvent(event.kind, event.item)
        self.world.at(stream.last, partial(self._deliver, stream, arrives))

    def _deliver(self, stream: _Stream, what: WatchEvent | ApiError | None) -> None:
        if not stream.process.is_closed():
            stream.process.call_soon(stream.arrived.put_nowait, what)


class SimulatedClient:
    """The client of one process."""

    def __init__(self, process: SimulatedProcess, api: SimulatedApi) -> None:
        self._process = process
        self._api = api

    def server_time(self) -> float | None:
        return self._api.world.now

    async def serves(self, resource: Resource) -> bool:
        return False

    async def get(self, target: Target) -> Mapping[str, object]:
        found: Object = await self._call(partial(self._api.get, _place(target)))
        return found

    async def patch_merge(self, target: Target, body: Mapping[str, Any]) -> Mapping[str, object]:
        sent, place = _copy(body), _place(target)
        act = partial(self._api.merge, self._process.name, place, sent)
        found: Object = await self._call(act, is_write=True, place=place)
        return found

    async def patch_json(
        self, target: Target, operations: Sequence[Mapping[str, object]]
    ) -> Mapping[str, object]:
        raise NotFoundError("Events are not kept", status=404, reason="NotFound")

    async def create(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        return body  # Events are not kept

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        page: Page = await self._call(partial(self._api.page, selection.resource.plural))
        return page

    @asynccontextmanager
    async def watch(
        self, selection: Selection, version: str, *, seconds: float, silence_seconds: float
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        stream = _Stream(self._process, selection.resource.plural)
        await self._call(partial(self._api.open, stream, int(version)))
        self._api.world.at(self._api.world.now + seconds, partial(self._api.end, stream))
        try:
            yield _events(stream, silence_seconds)
        finally:
            self._api.close(stream)

    async def _call(
        self, act: Callable[[], Any], *, is_write: bool = False, place: Place | None = None
    ) -> Any:
        api, world, network = self._api, self._api.world, self._api.network
        if self._process.name in network.down:
            raise UnavailableError("connection refused")
        answer: asyncio.Future[Any] = self._process.create_future()
        is_lost, is_forgotten = network.loses(), network.loses()

        def arrive() -> None:
            result: Any
            if is_lost:
                result = UnavailableError("connection reset", may_have_happened=is_write)
            elif place in api.objects and api.hangs(api.objects[place]):
                return
            else:
                try:
                    result = act()
                except ApiError as error:
                    result = error
                if is_forgotten:
                    result = UnavailableError("connection reset", may_have_happened=is_write)
            world.at(world.now + network.seconds(), partial(self._answer, answer, result))

        world.at(world.now + network.seconds(), arrive)
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                return await answer
        except TimeoutError as error:
            raise TimedOutError("no answer in time", may_have_happened=is_write) from error

    def _answer(self, answer: "asyncio.Future[Any]", result: Any) -> None:
        def take() -> None:
            if answer.done():
                return
            if isinstance(result, ApiError):
                answer.set_exception(result)
            else:
                answer.set_result(result)

        if not self._process.is_closed():
            self._process.call_soon(take)


async def _events(stream: _Stream, silence_seconds: float) -> AsyncIterator[WatchEvent]:
    while True:
        try:
            async with asyncio.timeout(silence_seconds):
                what = await stream.arrived.get()
        except TimeoutError as error:
            raise SilenceError("the watch was silent") from error
        if what is None:
            return
        if isinstance(what, ApiError):
            raise what
        yield what


def pod_place(namespace: str, name: str) -> Place:
    """Return where a pod is."""
    return (PODS.plural, namespace, name)


def _place(target: Target) -> Place:
    return (target.resource.plural, target.namespace, target.name)


def _merged(now: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    found = dict(now) if isinstance(now, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def _copy(item: Mapping[str, Any]) -> Object:
    copied: Object = orjson.loads(orjson.dumps(item))
    return copied
