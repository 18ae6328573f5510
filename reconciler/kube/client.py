# SPDX-License-Identifier: Apache-2.0
"""The one client of the Kubernetes API: raw JSON in and out, a deadline on every call.

It knows the API's verbs and their wire format, nothing of the objects' meaning. Every read is
consistent (no resourceVersion 0). Retries, caches and rate limits are the callers'.
"""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

import aiohttp
import orjson

from reconciler.kube.access import AccessSource
from reconciler.kube.errors import (
    MalformedAnswerError,
    NotFoundError,
    SilenceError,
    TimedOutError,
)
from reconciler.kube.resources import Resource, Selection, Target
from reconciler.kube.stream import LineBuffer, WatchEvent, decode_event
from reconciler.kube.transport import Call, ClientSettings, Transport, translated

JsonObject = Mapping[str, object]

_LOG: Final = logging.getLogger(__name__)
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
_DEFAULT_SETTINGS: Final = ClientSettings()


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list. `continue_token` is empty on the last; `version` is that of the whole."""

    items: Sequence[JsonObject]
    version: object
    continue_token: str


class Client:
    """One API server. Use as an async context manager; entering raises AccessError."""

    def __init__(
        self,
        source: AccessSource,
        settings: ClientSettings = _DEFAULT_SETTINGS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._transport = Transport(source, settings, clock)
        self._clock = clock

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._transport.__aexit__(kind, error, traceback)

    def server_time(self) -> float | None:
        """Return the server's clock in Unix seconds, None before its first answer."""
        return self._transport.server_clock.now(self._clock())

    async def get(self, target: Target) -> JsonObject:
        """Return the object as it is now. Raises NotFoundError."""
        return await self._json("GET", target.path)

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        """Return up to `limit` objects of a consistent list.

        Raises GoneError when the continue token has expired: begin again.
        """
        query = {**selection.query(), "limit": str(limit)}
        if continue_token:
            query["continue"] = continue_token
        answer = await self._json("GET", selection.path, query)
        metadata, items = answer.get("metadata"), answer.get("items", "missing")
        # Null is Go's empty list; an answer without items would empty a store.
        if not isinstance(metadata, dict) or not isinstance(items, list | None):
            raise MalformedAnswerError(f"the answer for {selection} is no list")
        return Page(items or (), metadata.get("resourceVersion"), metadata.get("continue") or "")

    @asynccontextmanager
    async def watch(
        self, selection: Selection, version: str, *, seconds: float, silence_seconds: float
    ) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        """Open a watch from `version`; entering means that the server has accepted it.

        Iterating ends when the server ends the watch, after about `seconds`. It raises GoneError,
        SilenceError (nothing came for `silence_seconds`) or another ApiError.
        """
        query = {
            **selection.query(),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        call = Call("GET", selection.path, query, silence_seconds=silence_seconds)
        response = await self._transport.send(call)
        try:
            async with aclosing(_events(response, call, selection)) as events:
                yield events
        finally:
            _abandon(response)

    async def create(
        self, target: Target, body: JsonObject, *, dry_run: bool = False
    ) -> JsonObject:
        """Create an object in a collection, or post to a subresource. Raises AlreadyExistsError."""
        query = {"dryRun": "All"} if dry_run else {}
        return await self._json("POST", target.path, query, orjson.dumps(body))

    async def patch_json(self, target: Target, operations: Sequence[JsonObject]) -> JsonObject:
        """Apply an RFC 6902 patch and return the object.

        Begun with `replace /metadata/resourceVersion` it is conditional: a stale version is a
        ConflictError, where a stale `test` would be an InvalidError like any other.
        """
        body = orjson.dumps(list(operations))
        return await self._json("PATCH", target.path, {}, body, _JSON_PATCH)

    async def patch_merge(
        self, target: Target, body: JsonObject, *, dry_run: bool = False
    ) -> JsonObject:
        """Apply an RFC 7386 patch and return the object.

        With a resourceVersion in its metadata it is conditional: a stale one is a ConflictError.
        """
        query = {"dryRun": "All"} if dry_run else {}
        return await self._json("PATCH", target.path, query, orjson.dumps(body), _MERGE_PATCH)

    async def apply(
        self, target: Target, body: JsonObject, *, field_manager: str, force: bool = True
    ) -> JsonObject:
        """Server-side apply: create the object, or own and set the fields that `body` has."""
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        return await self._json("PATCH", target.path, query, orjson.dumps(body), _APPLY_PATCH)

    async def update(self, target: Target, body: JsonObject) -> JsonObject:
        """Replace an object and return it.

        Conditional on the resourceVersion that `body` names: a stale one is a ConflictError.
        """
        return await self._json("PUT", target.path, {}, orjson.dumps(body))

    async def delete(
        self, target: Target, *, uid: str = "", version: str = "", grace_seconds: int | None = None
    ) -> JsonObject:
        """Delete an object; with `uid` or `version` only that one as it is, else ConflictError."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            **_delete_options(uid, version, grace_seconds),
        }
        return await self._json("DELETE", target.path, {}, orjson.dumps(options))

    async def evict(
        self,
        target: Target,
        *,
        uid: str,
        version: str,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for a pod's end by the Eviction API, if it is still this pod in this version.

        Raises BudgetError while a disruption budget forbids it, ConflictError for another uid or
        version, NotFoundError. Source: Kubernetes API `policy/v1` Eviction.
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": target.name, "namespace": target.namespace},
            "deleteOptions": _delete_options(uid, version, grace_seconds),
        }
        await self.create(replace(target, subresource="eviction"), body, dry_run=dry_run)

    async def server_version(self) -> str:
        """Return the server's version, such as `v1.37.2`."""
        version = (await self._json("GET", "/version")).get("gitVersion")
        if not isinstance(version, str):
            raise MalformedAnswerError("the answer for /version has no gitVersion")
        return version

    async def serves(self, resource: Resource) -> bool:
        """Tell from discovery whether the server has this resource in this version."""
        try:
            answer = await self._json("GET", resource.api)
        except NotFoundError:
            return False
        served = answer.get("resources")
        return isinstance(served, list) and any(
            isinstance(entry, Mapping) and entry.get("name") == resource.plural for entry in served
        )

    async def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        seconds = self._settings.call_seconds
        call = Call(method, path, query or {}, body, content_type, seconds=seconds)
        response = await self._transport.send(call)
        content = await translated(response.read, call)
        try:
            answer = orjson.loads(content)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            # The server has answered with success, so a write has happened.
            raise MalformedAnswerError(
                f"{call}: the answer is no JSON object", may_have_happened=call.is_write
            )
        return answer


def _delete_options(uid: str, version: str, grace_seconds: int | None) -> dict[str, object]:
    named = {"uid": uid, "resourceVersion": version}
    options: dict[str, object] = {}
    if preconditions := {key: value for key, value in named.items() if value}:
        options["preconditions"] = preconditions
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def _abandon(response: aiohttp.ClientResponse) -> None:
    """Drop a stream's connection at once: an orderly end of TLS would wait for the server."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _events(
    response: aiohttp.ClientResponse, call: Call, selection: Selection
) -> AsyncGenerator[WatchEvent, None]:
    lines = LineBuffer()
    chunks = response.content.iter_any()
    while chunk := await _next_chunk(chunks, call, selection):
        for line in lines.feed(chunk):
            event = decode_event(line)
            if event is None:
                _LOG.warning("the watch of %s sent an event of unknown type", selection)
            else:
                yield event
    # A line without its end was cut off; the next watch brings that event again.


async def _next_chunk(chunks: AsyncIterator[bytes], call: Call, selection: Selection) -> bytes:
    try:
        return await translated(lambda: anext(chunks, b""), call)
    except TimedOutError as error:
        raise SilenceError(
            f"the watch of {selection} was silent for {call.silence_seconds:g} s"
        ) from error
