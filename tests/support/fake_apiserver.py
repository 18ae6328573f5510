# SPDX-License-Identifier: Apache-2.0
"""An API server in memory, for the faults that a real one cannot be made to show on demand.

It holds any resource, checks resourceVersions (409), forgets history (410), pages lists from a
consistent snapshot, and can be told to refuse, stay silent, cut connections or send given bytes.
It knows no defaults, no validation and no admission.
"""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
from aiohttp import web
from multidict import CIMultiDictProxy

from tests.support.waiting import until

Object = dict[str, Any]
Match = Callable[[Mapping[str, Any]], bool]

_TOO_OLD = "too old resource version"
_POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: CIMultiDictProxy[str]


@dataclass(slots=True)
class Fault:
    """An answer given instead of the true one, to `times` requests of this method and path.

    `after` so many of them have been answered truly.
    """

    method: str
    path: str
    status: int
    body: Object | str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    after: int = 0
    watches: bool = True
    lists: bool = True

    def fits(self, request: web.Request) -> bool:
        """Tell whether this request gets it; each that does uses it up by one."""
        wanted = self.watches if "watch" in request.query else self.lists
        if not wanted or (self.method, self.path) != (request.method, request.path):
            return False
        self.after -= 1
        if self.after >= 0 or self.times <= 0:
            return False
        self.times -= 1
        return True


@dataclass(frozen=True, slots=True)
class _Record:
    version: int
    old: Object | None
    new: Object | None
    last: Object


@dataclass(eq=False, slots=True)
class _Stream:
    response: web.StreamResponse
    collection: str
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class FakeApiServer:
    """Serves on loopback while `run_fake` is entered; everything may be changed meanwhile."""

    def __init__(self) -> None:
        self.url = ""
        self.version = 100
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.tokens: set[str] | None = None
        self.is_silent = False
        """Whether watches send nothing at all any more, bookmarks neither."""
        self.hangs = False
        """Whether requests are read and never answered."""
        self.evictions: list[Object] = []
        """The bodies of the evictions that were asked for."""
        self.on_patch: Callable[[str], None] = lambda _path: None
        """Called with the path before a patch is looked at."""
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        self._history: list[tuple[str, _Record]] = []
        self._compacted = 0
        self._snapshots: dict[str, tuple[int, list[Object]]] = {}
        self._streams: list[_Stream] = []

    # What a test does to the cluster

    def put(self, collection: str, item: Object) -> Object:
        """Create or replace an object; a changed uid makes it another object of the same name."""
        metadata = item["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        old = self._objects.setdefault(collection, {}).get(key)
        self.version += 1
        new = copy.deepcopy(item)
        new["metadata"].setdefault(
            "uid", (old or new)["metadata"].get("uid", f"uid-{self.version}")
        )
        new["metadata"]["resourceVersion"] = str(self.version)
        self._objects[collection][key] = new
        self._record(collection, _Record(self.version, old, new, new))
        return copy.deepcopy(new)

    def remove(self, collection: str, name: str, namespace: str = "") -> None:
        old = self._objects[collection].pop((namespace, name))
        self.version += 1
        last = copy.deepcopy(old)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._record(collection, _Record(self.version, old, None, last))

    def find(self, collection: str, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(collection, {}).get((namespace, name))

    def compact(self) -> None:
        """Forget the history: older versions and continue tokens are gone."""
        self._compacted = self.version
        self._history.clear()
        self._snapshots.clear()

    def cut(self) -> int:
        """Break every open watch in the middle, and return how many there were."""
        streams, self._streams = self._streams, []
        for stream in streams:
            stream.closed.set()
        return len(streams)

    async def send(self, collection: str, data: bytes) -> None:
        """Write bytes into the open watches of a collection."""
        for stream in self._streams:
            if stream.collection == collection:
                await stream.response.write(data)

    def count(self, method: str, path: str, *, watches: bool = False) -> int:
        return sum(
            1
            for seen in self.seen
            if (seen.method, seen.path, "watch" in seen.query) == (method, path, watches)
        )

    async def wait_watches(self, count: int = 1) -> None:
        """Wait until so many watches are open."""
        await until(lambda: len(self._streams) >= count)

    def _record(self, collection: str, record: _Record) -> None:
        self._history.append((collection, record))

    # What the API answers

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(Seen(request.method, request.path, dict(request.query), request.headers))
        if self.hangs:
            await asyncio.Event().wait()
        if self.tokens is not None and request.headers.get("Authorization") not in self.tokens:
            return _failure(401, "Unauthorized", "Unauthorized")
        for fault in self.faults:
            if fault.fits(request):
                return _fault_answer(fault)
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": "37", "gitVersion": "v1.37.2"})
        return await self._answer(request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        collection, namespace, name = _split(request.path)
        if not collection:
            return self._discovery(request.path)
        if "watch" in request.query:
            return await self._watch(request, collection, namespace)
        if not name:
            if request.method == "POST":
                return await self._create(request, collection, namespace)
            return self._list(request, collection, namespace)
        item = self.find(collection, name, namespace)
        if item is None:
            return _failure(404, "NotFound", f"{name} not found")
        if request.method == "PATCH":
            return await self._patch(request, collection, item)
        if request.method == "PUT":
            return await self._update(request, collection, item)
        if request.method == "POST":
            return await self._evict(request, collection, item)
        if request.method == "DELETE":
            return await self._delete(request, collection, item)
        return web.json_response(item)

    def _discovery(self, path: str) -> web.Response:
        known = [c.rsplit("/", 1)[1] for c in self._objects if c.rsplit("/", 1)[0] == path]
        if not known:
            return web.Response(status=404, text="404 page not found")
        return web.json_response(
            {"kind": "APIResourceList", "resources": [{"name": name} for name in known]}
        )

    def _list(self, request: web.Request, collection: str, namespace: str) -> web.Response:
        token = request.query.get("continue", "")
        if token:
            if token not in self._snapshots:
                return _failure(410, "Expired", "The provided continue parameter is too old")
            version, items = self._snapshots.pop(token)
        else:
            match = _selector(request.query, namespace)
            objects = self._objects.get(collection, {})
            version, items = self.version, [objects[key] for key in sorted(objects)]
            items = [copy.deepcopy(item) for item in items if match(item)]
        limit = int(request.query.get("limit", "0")) or len(items)
        metadata: Object = {"resourceVersion": str(version)}
        if rest := items[limit:]:
            metadata["continue"] = f"after-{len(rest)}-at-{version}"
            metadata["remainingItemCount"] = len(rest)
            self._snapshots[metadata["continue"]] = (version, rest)
        return web.json_response({"kind": "List", "metadata": metadata, "items": items[:limit]})

    async def _create(self, request: web.Request, collection: str, namespace: str) -> web.Response:
        item = await request.json()
        item["metadata"]["namespace"] = namespace
        if self.find(collection, item["metadata"]["name"], namespace):
            return _failure(409, "AlreadyExists", "already exists")
        if request.query.get("dryRun"):
            return web.json_response(item, status=201)
        return web.json_response(self.put(collection, item), status=201)

    async def _patch(self, request: web.Request, collection: str, item: Object) -> web.Response:
        if request.content_type not in _PATCHES:
            return _failure(415, "UnsupportedMediaType", "only JSON and merge patches here")
        body = await request.json()
        self.on_patch(request.path)
        metadata = item["metadata"]
        current = self.find(collection, metadata["name"], metadata.get("namespace", ""))
        if current is None:
            return _failure(404, "NotFound", "not found")
        try:
            patched = _PATCHES[request.content_type](current, body)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            return _failure(422, "Invalid", f"the server rejected our request: {error}")
        if patched["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]:
            return _failure(409, "Conflict", "the object has been modified")
        return web.json_response(self.put(collection, patched))

    async def _update(self, request: web.Request, collection: str, item: Object) -> web.Response:
        body = await request.json()
        if body["metadata"].get("resourceVersion") != item["metadata"]["resourceVersion"]:
            return _failure(409, "Conflict", "the object has been modified")
        return web.json_response(self.put(collection, body))

    async def _evict(self, request: web.Request, collection: str, item: Object) -> web.Response:
        eviction = await request.json()
        self.evictions.append(eviction)
        return self._end(request, collection, item, eviction["deleteOptions"])

    async def _delete(self, request: web.Request, collection: str, item: Object) -> web.Response:
        return self._end(request, collection, item, json.loads(await request.text() or "{}"))

    def _end(
        self, request: web.Request, collection: str, item: Object, options: Object
    ) -> web.Response:
        metadata = item["metadata"]
        for name, wanted in options.get("preconditions", {}).items():
            if wanted != metadata[name]:
                return _failure(409, "Conflict", f"the {name} in the precondition differs")
        if request.query.get("dryRun"):
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        self.remove(collection, metadata["name"], metadata.get("namespace", ""))
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _watch(
        self, request: web.Request, collection: str, namespace: str
    ) -> web.StreamResponse:
        asked = request.query.get("resourceVersion", "")
        if not asked.isdigit() or asked == "0":
            return _failure(500, "InternalError", f'strconv.ParseUint: parsing "{asked}"')
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        stream = _Stream(response, collection)
        if int(asked) < self._compacted:
            await response.write(_line("ERROR", _status(410, "Expired", f"{_TOO_OLD}: {asked}")))
            return response
        self._streams.append(stream)
        try:
            await self._serve(stream, _selector(request.query, namespace), request)
        finally:
            if stream in self._streams:
                self._streams.remove(stream)
        return response

    async def _serve(self, stream: _Stream, match: Match, request: web.Request) -> None:
        sent = int(request.query["resourceVersion"])
        deadline = asyncio.get_running_loop().time() + float(request.query["timeoutSeconds"])
        while not stream.closed.is_set():
            fresh = [] if self.is_silent else self._since(stream.collection, sent)
            for record in fresh:
                if line := _event_line(record, match):
                    await stream.response.write(line)
                sent = record.version
            if asyncio.get_running_loop().time() > deadline:
                if not self.is_silent:
                    await stream.response.write(_bookmark(self.version))
                return
            await asyncio.sleep(_POLL_SECONDS)
        if (transport := request.transport) is not None:
            transport.abort()

    def _since(self, collection: str, version: int) -> list[_Record]:
        return [r for c, r in self._history if c == collection and r.version > version]


@asynccontextmanager
async def run_fake() -> AsyncIterator[FakeApiServer]:
    """A fake API server on a free loopback port."""
    fake = FakeApiServer()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    fake.url = f"http://{host}:{port}"
    try:
        yield fake
    finally:
        fake.cut()
        await runner.cleanup()


def merged(known: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(known) if isinstance(known, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


_PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/json-patch+json": jsonpatch.apply_patch,
    "application/merge-patch+json": merged,
}


def _status(code: int, reason: str, message: str) -> Object:
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**status, "code": code, "reason": reason, "message": message, "details": {}}


def _failure(code: int, reason: str, message: str) -> web.Response:
    return web.json_response(_status(code, reason, message), status=code)


def _fault_answer(fault: Fault) -> web.Response:
    if isinstance(fault.body, str):
        return web.Response(status=fault.status, text=fault.body, headers=fault.headers)
    return web.json_response(fault.body, status=fault.status, headers=fault.headers)


def _line(kind: str, item: Object) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def _bookmark(version: int) -> bytes:
    return _line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def _event_line(record: _Record, match: Match) -> bytes | None:
    """An object that leaves a selection is DELETED for it, one that enters is ADDED."""
    was = record.old is not None and match(record.old)
    now = record.new is not None and match(record.new)
    if now:
        return _line("MODIFIED" if was else "ADDED", record.last)
    return _line("DELETED", record.last) if was else None


def _split(path: str) -> tuple[str, str, str]:
    """Collection without its namespace, namespace, name."""
    parts = path.strip("/").split("/")
    prefix = 2 if parts[0] == "api" else 3
    api, rest = parts[:prefix], parts[prefix:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return "", "", ""
    name = rest[1] if len(rest) > 1 else ""
    return "/" + "/".join([*api, rest[0]]), namespace, name


def _selector(query: Mapping[str, str], namespace: str) -> Match:
    terms = [term.partition("=") for term in query.get("fieldSelector", "").split(",") if term]

    def match(item: Mapping[str, Any]) -> bool:
        in_namespace = not namespace or item["metadata"].get("namespace") == namespace
        return in_namespace and all(_field(item, path) == value for path, _, value in terms)

    return match


def _field(item: Mapping[str, Any], path: str) -> str:
    value: Any = item
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, Mapping) else ""
    return str(value)
