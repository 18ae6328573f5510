# SPDX-License-Identifier: Apache-2.0
"""Objects that processes of a simulated world write to, over a network that delays and loses.

It checks resourceVersions as an API server does. A call that is abandoned still arrives: what has
been sent cannot be called back.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from reconciler.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
    UnavailableError,
)
from reconciler.kube.resources import Target
from tests.support.simulated import SimulatedProcess, World

Object = dict[str, Any]


@dataclass(slots=True)
class Network:
    """How calls fare; it may be changed while the world runs."""

    draw: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - replayable
    delay: tuple[float, float] = (0.001, 0.02)
    failing: float = 0.0
    """The share of calls of which the request or the answer is lost."""
    slow: float = 0.0
    """The share of messages that take up to `slow_seconds`."""
    slow_seconds: float = 30.0
    down: set[str] = field(default_factory=set)
    """Processes whose calls are refused."""

    def seconds(self) -> float:
        if self.draw.random() < self.slow:
            return self.draw.uniform(0.0, self.slow_seconds)
        return self.draw.uniform(*self.delay)

    def loses(self) -> bool:
        return self.draw.random() < self.failing / 2


class LeaseServer:
    """The objects, by path."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, Object] = {}
        self.writes: list[tuple[str, Object]] = []
        """Every write that landed: who sent it and what it left."""
        self.refusals: list[ApiError] = []
        """Answers to the next calls, instead of the true ones."""

    def get(self, path: str) -> Object:
        if path not in self.objects:
            raise NotFoundError("not found", status=404)
        return _copy(self.objects[path])

    def create(self, target: Target, body: Mapping[str, Any]) -> Object:
        path = f"{target.path}/{body['metadata']['name']}"
        if path in self.objects:
            raise AlreadyExistsError("already exists", status=409)
        return self._store(path, {"uid": f"uid-{self.version}"}, body)

    def update(self, path: str, body: Mapping[str, Any]) -> Object:
        now = self.get(path)["metadata"]
        named = body["metadata"].get("resourceVersion", now["resourceVersion"])
        if named != now["resourceVersion"]:
            raise ConflictError("the object has been modified", status=409)
        return self._store(path, {"uid": now["uid"]}, body)

    def edit(self, path: str, change: Callable[[Object], None]) -> None:
        """Change an object as a person would, by hand."""
        item = self.get(path)
        change(item)
        self._store(path, {}, item)

    def remove(self, path: str) -> None:
        del self.objects[path]

    def _store(self, path: str, metadata: Object, body: Mapping[str, Any]) -> Object:
        self.version += 1
        stored = _copy(body)
        stored["metadata"] |= {**metadata, "resourceVersion": str(self.version)}
        self.objects[path] = stored
        return _copy(stored)


class RemoteClient:
    """The client of one process: reaches the server through the world's network."""

    def __init__(
        self, world: World, process: SimulatedProcess, server: LeaseServer, network: Network
    ) -> None:
        self._world = world
        self._process = process
        self._server = server
        self._network = network

    async def get(self, target: Target) -> Mapping[str, Any]:
        return await self._call(partial(self._server.get, target.path), is_write=False)

    async def create(self, target: Target, body: Mapping[str, Any]) -> Mapping[str, Any]:
        sent = _copy(body)
        return await self._call(partial(self._server.create, target, sent), is_write=True)

    async def update(self, target: Target, body: Mapping[str, Any]) -> Mapping[str, Any]:
        sent = _copy(body)
        return await self._call(partial(self._server.update, target.path, sent), is_write=True)

    async def _call(self, act: Callable[[], Object], *, is_write: bool) -> Object:
        network, world = self._network, self._world
        if self._process.name in network.down:
            raise UnavailableError("connection refused")
        answer: asyncio.Future[Object] = self._process.create_future()
        happening = network.loses()
        forgotten = network.loses()

        def arrive() -> None:
            result: Object | ApiError
            if happening:
                result = UnavailableError("connection reset", may_have_happened=is_write)
            else:
                try:
                    if self._server.refusals:
                        raise self._server.refusals.pop(0)
                    result = act()
                    if is_write:
                        self._server.writes.append((self._process.name, result))
                except ApiError as error:
                    result = error
                if forgotten:
                    result = UnavailableError("connection reset", may_have_happened=is_write)
            world.at(world.now + network.seconds(), partial(self._answer, answer, result))

        world.at(world.now + network.seconds(), arrive)
        return await answer

    def _answer(self, answer: "asyncio.Future[Object]", result: Object | ApiError) -> None:
        def take() -> None:
            if answer.done():
                return
            if isinstance(result, ApiError):
                answer.set_exception(result)
            else:
                answer.set_result(result)

        if not self._process.is_closed():
            self._process.call_soon(take)


def _copy(item: Mapping[str, Any]) -> Object:
    """What arrives is what was sent, as JSON."""
    copied: Object = orjson.loads(orjson.dumps(item))
    return copied
