# SPDX-License-Identifier: Apache-2.0
"""Watches resources that the server may not serve yet, and takes up each as soon as it is served.

Custom resources come with an installation's manifests, which may be applied after the process has
started. What the objects mean is not known here.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol

from reconciler.kube.errors import ApiError
from reconciler.kube.reflector import Reflector, ReflectorSettings, Source
from reconciler.kube.resources import Resource, Selection
from reconciler.kube.store import Change, T, View

_LOG: Final = logging.getLogger(__name__)


class Server(Source, Protocol):
    """The part of a client that is needed: what a reflector needs, and discovery."""

    async def serves(self, resource: Resource) -> bool:
        """Tell whether the server has this resource in this version."""
        ...


@dataclass(frozen=True, slots=True)
class ServedSettings:
    """How often a resource that is not served is looked for, and how the others are watched."""

    look_seconds: float = 10.0
    reflector: ReflectorSettings = field(default_factory=ReflectorSettings)


_SETTINGS: Final = ServedSettings()


class ServedWatch(Generic[T]):
    """The views of all objects of some resources, kept current while `run` runs."""

    def __init__(
        self,
        server: Server,
        views: Mapping[Resource, View[T]],
        settings: ServedSettings = _SETTINGS,
    ) -> None:
        self._server = server
        self._views = views
        self._settings = settings
        self._reflectors: dict[Resource, Reflector[T]] = {}
        self._first: tuple[Reflector[T], ...] | None = None
        self._subscribers: tuple[Callable[[], None], ...] = ()
        self._error = ""

    @property
    def is_synced(self) -> bool:
        """Whether all that was served at first has been listed; what comes later joins when it is.

        It stays so from then on.
        """
        return self._first is not None and all(item.synced.is_set() for item in self._first)

    @property
    def served(self) -> tuple[Resource, ...]:
        """Return the resources that have been found so far."""
        return tuple(self._reflectors)

    @property
    def listed(self) -> tuple[Resource, ...]:
        """Return those of them whose objects are all known."""
        return tuple(key for key, item in self._reflectors.items() if item.synced.is_set())

    def values(self) -> Iterator[T]:
        """Yield all views, by resource as given, in no particular order within one."""
        for resource in self._views:
            reflector = self._reflectors.get(resource)
            if reflector is not None and reflector.synced.is_set():
                yield from reflector.values()

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Have `subscriber` called after every change of what the properties say."""
        self._subscribers = (*self._subscribers, subscriber)

    async def run(self) -> None:
        """Keep watching until cancelled; raises only what is a fault of our own."""
        async with asyncio.TaskGroup() as tasks:
            while missing := [item for item in self._views if item not in self._reflectors]:
                if await self._look(missing, tasks) and self._first is None:
                    self._first = tuple(self._reflectors.values())
                    self._tell()
                await asyncio.sleep(self._settings.look_seconds)

    async def _look(self, missing: list[Resource], tasks: asyncio.TaskGroup) -> bool:
        """Begin to watch those that are served now; return whether the server could be asked."""
        try:
            for resource in missing:
                if await self._server.serves(resource):
                    self._begin(resource, tasks)
        except ApiError as error:
            if str(error) != self._error:
                self._error = str(error)
                _LOG.warning("cannot tell which resources are served: %s", error)
            return False
        self._error = ""
        return True

    def _begin(self, resource: Resource, tasks: asyncio.TaskGroup) -> None:
        reflector = Reflector(
            self._server, Selection(resource), self._views[resource], self._settings.reflector
        )
        reflector.subscribe(self._changed)
        self._reflectors[resource] = reflector
        tasks.create_task(reflector.run(), name=f"watch {resource.plural}")
        tasks.create_task(self._wait_synced(reflector), name=f"list {resource.plural}")

    async def _wait_synced(self, reflector: Reflector[T]) -> None:
        # An empty list brings no change, and still says that there is nothing.
        await reflector.synced.wait()
        self._tell()

    def _changed(self, _change: Change[T]) -> None:
        self._tell()

    def _tell(self) -> None:
        for subscriber in self._subscribers:
            subscriber()
