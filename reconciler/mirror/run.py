# SPDX-License-Identifier: Apache-2.0
"""Keeps mirrors and conditions true to the documents, for as long as this process leads."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

from policies.documents.source import SourceText
from reconciler.kube.backoff import DEFAULT_BACKOFF, Backoff
from reconciler.kube.document_resources import API_KINDS, resource_of
from reconciler.kube.errors import ApiError, ConflictError, TooManyRequestsError, UnavailableError
from reconciler.kube.reflector import Runtime
from reconciler.kube.served import ServedSettings, ServedWatch, Server
from reconciler.mirror.actuate import Writer, carry_out
from reconciler.mirror.documents import FileDocument, file_documents
from reconciler.mirror.plan import Command, Documents, Write, plan
from reconciler.mirror.view import Found, found
from reconciler.runtime.documents import DocumentState

_LOG: Final = logging.getLogger(__name__)
_RESOURCES: Final = {resource_of(kind): kind for kind in API_KINDS}


class Api(Server, Writer, Protocol):
    """The part of a client that is needed."""


class Watched(Protocol):
    """The documents of this process."""

    @property
    def state(self) -> DocumentState:
        """Return what is served and what is wrong with the newest content."""

    def subscribe(self, subscriber: Callable[[DocumentState], None]) -> Callable[[], None]:
        """Have `subscriber` called after every change; what is returned ends that."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """Changes are gathered for `settle_seconds`; what failed is tried again after `retry`.

    `now` is the time of day that conditions say.
    """

    settle_seconds: float = 0.1
    retry: Backoff = DEFAULT_BACKOFF
    served: ServedSettings = field(default_factory=ServedSettings)
    now: Callable[[], datetime] = _utc_now


@dataclass(frozen=True, slots=True)
class MirrorHooks:
    """What others are told: of each thing that was done, and of each that failed."""

    done: Callable[[Command], None] = lambda _command: None
    failed: Callable[[Command, ApiError], None] = lambda _command, _error: None


_SETTINGS: Final = MirrorSettings()
_HOOKS: Final = MirrorHooks()
_RUNTIME: Final = Runtime()


async def run_mirror(
    api: Api,
    documents: Watched,
    hooks: MirrorHooks = _HOOKS,
    settings: MirrorSettings = _SETTINGS,
    runtime: Runtime = _RUNTIME,
) -> None:
    """Mirror until cancelled. Started once this process leads: its lists are from then."""
    mirror = _Mirror(api, documents, hooks, settings, runtime)
    await mirror.run()


class _Mirror:
    """One leadership's work."""

    def __init__(
        self,
        api: Api,
        documents: Watched,
        hooks: MirrorHooks,
        settings: MirrorSettings,
        runtime: Runtime,
    ) -> None:
        self._api = api
        self._documents = documents
        self._hooks = hooks
        self._settings = settings
        self._runtime = runtime
        views = {resource: partial(found, kind) for resource, kind in _RESOURCES.items()}
        self._objects: ServedWatch[Found] = ServedWatch(api, views, settings.served)
        self._changed = asyncio.Event()
        self._failures = 0
        self._logged = ""
        self._read: tuple[tuple[SourceText, ...], tuple[FileDocument, ...]] = ((), ())

    async def run(self) -> None:
        self._objects.subscribe(self._changed.set)
        end = self._documents.subscribe(lambda _state: self._changed.set())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._objects.run(), name="watch documents")
                tasks.create_task(self._follow(), name="mirror documents")
        finally:
            end()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            # What changes at once arrives one by one.
            await self._runtime.sleep(self._settings.settle_seconds)
            self._changed.clear()
            if self._objects.is_synced and not await self._is_done():
                self._failures += 1
                delay = self._settings.retry.seconds(self._failures, self._runtime.uniform)
                # A change in the meantime need not wait for that.
                asyncio.get_running_loop().call_later(delay, self._changed.set)
            else:
                self._failures = 0

    async def _is_done(self) -> bool:
        """Plan and do; return False if something has to be tried again."""
        state = self._documents.state
        generation = state.policy_set.generation if state.policy_set else ""
        kinds = frozenset(_RESOURCES[resource] for resource in self._objects.listed)
        commands = plan(await self._known(state), tuple(self._objects.values()), kinds)
        all_done = True
        for command in commands:
            try:
                await carry_out(self._api, command, generation, self._settings.now())
            except ApiError as error:
                self._note(command, error)
                all_done = False
                if isinstance(error, UnavailableError | TooManyRequestsError):
                    break
            else:
                self._hooks.done(command)
        return all_done

    async def _known(self, state: DocumentState) -> Documents:
        if self._read[0] != state.served:
            read = await asyncio.to_thread(file_documents, state.served)
            self._read = (state.served, read)
        files = self._read[1] if state.policy_set is not None else None
        return Documents(files, frozenset(state.served), state.problems, state.is_broken)

    def _note(self, command: Command, error: ApiError) -> None:
        if isinstance(error, ConflictError):
            return  # somebody was quicker; the next look shows it
        self._hooks.failed(command, error)
        text = f"{_subject(command)}: {error}"
        if text != self._logged:
            self._logged = text
            _LOG.warning("documents are not mirrored: %s", text)


def _subject(command: Command) -> str:
    item = command.document if isinstance(command, Write) else command.found
    return f"{item.kind}/{item.name}"
