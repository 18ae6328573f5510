# SPDX-License-Identifier: Apache-2.0
"""What each endpoint answers. How a server is run must not be here, nor how a review is decided."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

import orjson
from aiohttp import HttpVersion11, hdrs, web

from policies.model.request import Phase
from reconciler.runtime.health import Condition
from webhook.documents import DocumentReviews, may_concern_documents
from webhook.duration import parse_seconds
from webhook.envelope import ReviewError, parse
from webhook.in_flight import InFlight
from webhook.reading import read_at_once, read_slowly
from webhook.responses import JSON, Assembler, page, refusal
from webhook.reviews import Reviews
from webhook.serving import Serving

PHASES: Final = {"/mutate": Phase.MUTATE, "/validate": Phase.VALIDATE}
DEFAULT_SECONDS: Final = 10.0
"""The API server's own default for timeoutSeconds."""
MAX_SECONDS: Final = 30.0
"""The most that a webhook configuration may set."""


@dataclass(frozen=True, slots=True)
class Target:
    """A request target taken apart: the path, and for reviews the phase and the time allowed."""

    path: str
    phase: Phase | None
    seconds: float


@lru_cache(maxsize=128)
def parse_target(raw_path: str) -> Target:
    """Take a request target apart. Remembered: the API server sends the same few for ever."""
    path, _, query = raw_path.partition("?")
    seconds = parse_seconds(_timeout(query)) or DEFAULT_SECONDS
    return Target(path, PHASES.get(path), min(seconds, MAX_SECONDS))


def _timeout(query: str) -> str:
    try:
        return parse_qs(query, max_num_fields=16).get("timeout", [""])[0]
    except ValueError:
        return ""


class Handlers:
    """The endpoints."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._reviews = Reviews(serving, asyncio.get_running_loop().call_later)
        self._documents = (
            DocumentReviews(serving, serving.documents, self._reviews.recorder)
            if serving.documents is not None
            else None
        )
        self._assembler = Assembler()
        self._monotonic = serving.clock.monotonic
        self._pages: dict[str, Callable[[web.BaseRequest], web.Response]] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
        }
        self.in_flight = InFlight()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any request. Nothing that is sent makes this a status of 500."""
        with self.in_flight:
            return await self._handle(request)

    def flush(self) -> None:
        """Record what has been answered and not been recorded yet."""
        self._reviews.recorder.flush()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            target = parse_target(request.raw_path)
            if target.phase is None:
                return self._last(self._page(request, target.path))
            deadline = self._monotonic() + target.seconds
            body = read_at_once(request)
            if body is None:
                body = await read_slowly(request, target.seconds)
            response = None
            if self._documents is not None and may_concern_documents(body):
                response = await self._documents.review(parse(body, target.phase), deadline)
            if response is None:
                response = self._reviews.review(body, target.phase, deadline)
            return self._answer(request, response)
        except ReviewError as error:
            self._serving.metrics.call_refused(error.status)
            return self._last(refusal(error.status, str(error)))
        except ConnectionError:
            # The client has gone: what is returned is not sent, but aiohttp logs what is raised.
            return self._last(refusal(HTTPStatus.BAD_REQUEST, "the connection was lost"))

    def _answer(self, request: web.BaseRequest, response: bytes) -> web.StreamResponse:
        if request.version != HttpVersion11:
            return self._last(page(response, JSON))
        return self._assembler.assemble(
            response, close=self.in_flight.draining or not request.keep_alive
        )

    def _page(self, request: web.BaseRequest, path: str) -> web.Response:
        answer = self._pages.get(path)
        if answer is None:
            paths = ", ".join((*PHASES, *self._pages))
            raise ReviewError(f"there is no such path; there are {paths}", HTTPStatus.NOT_FOUND)
        if request.method != hdrs.METH_GET:
            raise ReviewError(f"{path} is read by GET", HTTPStatus.METHOD_NOT_ALLOWED)
        return answer(request)

    def _healthz(self, _: web.BaseRequest) -> web.Response:
        """Say that the event loop turns: whatever else is wrong, a restart would not cure it."""
        return page(b"ok\n", "text/plain; charset=utf-8")

    def _readyz(self, _: web.BaseRequest) -> web.Response:
        readiness = self._serving.readiness()
        if self.in_flight.draining:
            stopping = Condition("not-stopping", ok=False, message="the process is stopping")
            readiness = readiness.with_condition(stopping)
        status = HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return page(orjson.dumps(readiness.to_json()), JSON, status)

    def _metrics(self, request: web.BaseRequest) -> web.Response:
        self.flush()
        body, content_type = self._serving.metrics.exposition(request.headers.get(hdrs.ACCEPT, ""))
        return page(body, content_type)

    def _last(self, response: web.Response) -> web.Response:
        """Close the connection after this response if the process is stopping."""
        if self.in_flight.draining:
            response.force_close()
        return response
