# SPDX-License-Identifier: Apache-2.0
"""The HTTP endpoints of the extender. What is answered is decided elsewhere.

A call that is no question gets a status of 400 or more and a line that says why. A fault of our
own is logged and answered neutrally: it must not keep a pod from being scheduled.
"""

import logging
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol

import orjson
from aiohttp import HttpVersion11, hdrs, web

from reconciler.runtime.health import Condition, Readiness
from webhook.envelope import ReviewError
from webhook.extender.wire import (
    Preemption,
    Question,
    Sifted,
    Victims,
    WireError,
    decode_preemption,
    decode_question,
    encode_preemption,
    encode_scores,
    encode_sifted,
)
from webhook.in_flight import InFlight
from webhook.reading import read_slowly
from webhook.responses import JSON, Assembler, page, refusal

_LOG: Final = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 128 * 1024 * 1024
"""Thousands of whole nodes of 10 to 30 KiB each, where names would do."""
BODY_SECONDS: Final = 5.0
"""kube-scheduler's own default for httpTimeout: it waits no longer."""


class Asked(Protocol):
    """Who knows the answers."""

    def filter(self, question: Question) -> Sifted:
        """Return which nodes may hold the pod."""
        ...

    def prioritize(self, question: Question) -> Mapping[str, int]:
        """Return scores from 0 to 10 by node."""
        ...

    def choose(self, question: Question) -> Sifted:
        """Return which node the pod is to get: filter and prioritize at once."""
        ...

    def preempt(self, question: Preemption) -> Mapping[str, Victims]:
        """Return the nodes that pods may be taken off."""
        ...


class ExtenderMetrics(Protocol):
    """Where questions are counted."""

    def extender_asked(self, verb: str, seconds: float) -> None:
        """Count an answered question."""

    def extender_failed(self, verb: str) -> None:
        """Count a question that was answered neutrally for a fault of our own."""

    def call_refused(self, status: int) -> None:
        """Count a call that was no question."""

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return what /metrics answers, and its content type."""


class Handlers:
    """The endpoints. While it `is_active` not, each answer is the last one of its connection.

    A scheduler keeps its connection for as long as it asks: it would go on asking who has been
    active before, whatever its Service leads to now.
    """

    def __init__(
        self,
        asked: Asked,
        readiness: Callable[[], Readiness],
        metrics: ExtenderMetrics,
        is_active: Callable[[], bool] = lambda: True,
    ) -> None:
        self._asked = asked
        self._readiness = readiness
        self._metrics = metrics
        self._is_active = is_active
        self._assembler = Assembler()
        self._verbs: dict[str, Callable[[bytes], bytes]] = {
            "/scheduler/filter": self._filter,
            "/scheduler/prioritize": self._prioritize,
            "/scheduler/choose": self._choose,
            "/scheduler/preempt": self._preempt,
        }
        self._pages: dict[str, Callable[[web.BaseRequest], web.Response]] = {
            "/healthz": lambda _: page(b"ok\n", "text/plain; charset=utf-8"),
            "/readyz": self._readyz,
            "/metrics": self._exposition,
        }
        self.in_flight = InFlight()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any request. Nothing that is sent makes this a status of 500."""
        with self.in_flight:
            return await self._handle(request)

    def flush(self) -> None:
        """Do nothing: nothing is recorded late."""

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            path = request.raw_path.partition("?")[0]
            answer = self._verbs.get(path)
            if answer is None:
                return self._last(self._page(request, path))
            body = await _read(request)
            began = time.perf_counter()
            found = answer(body)
            self._metrics.extender_asked(path.rpartition("/")[2], time.perf_counter() - began)
            if request.version != HttpVersion11:
                return self._last(page(found, JSON))
            close = self._is_last or not request.keep_alive
            return self._assembler.assemble(found, close=close)
        except WireError as error:
            return self._refused(HTTPStatus.BAD_REQUEST, str(error))
        except ReviewError as error:
            return self._refused(error.status, str(error))
        except ConnectionError:
            return self._last(refusal(HTTPStatus.BAD_REQUEST, "the connection was lost"))

    def _filter(self, body: bytes) -> bytes:
        return self._told("filter", self._asked.filter, body)

    def _choose(self, body: bytes) -> bytes:
        return self._told("choose", self._asked.choose, body)

    def _told(self, verb: str, sift: Callable[[Question], Sifted], body: bytes) -> bytes:
        question = decode_question(body)
        try:
            return encode_sifted(question, sift(question))
        except Exception:  # noqa: BLE001 - whatever it was, pods must be scheduled
            self._fault(verb)
            return encode_sifted(question, Sifted(question.names))

    def _prioritize(self, body: bytes) -> bytes:
        question = decode_question(body)
        try:
            return encode_scores(self._asked.prioritize(question))
        except Exception:  # noqa: BLE001 - whatever it was, pods must be scheduled
            self._fault("prioritize")
            return encode_scores(dict.fromkeys(question.names, 0))

    def _preempt(self, body: bytes) -> bytes:
        question = decode_preemption(body)
        try:
            return encode_preemption(self._asked.preempt(question))
        except Exception:  # noqa: BLE001 - whatever it was, pods must be scheduled
            self._fault("preempt")
            # Who might be taken off is not known: nobody is.
            return encode_preemption({})

    def _fault(self, verb: str) -> None:
        _LOG.exception("%s could not be answered; the scheduler goes on without", verb)
        self._metrics.extender_failed(verb)

    def _page(self, request: web.BaseRequest, path: str) -> web.Response:
        answer = self._pages.get(path)
        if answer is None:
            paths = ", ".join((*self._verbs, *self._pages))
            raise ReviewError(f"there is no such path; there are {paths}", HTTPStatus.NOT_FOUND)
        if request.method != hdrs.METH_GET:
            raise ReviewError(f"{path} is read by GET", HTTPStatus.METHOD_NOT_ALLOWED)
        return answer(request)

    def _readyz(self, _: web.BaseRequest) -> web.Response:
        readiness = self._readiness()
        if self.in_flight.draining:
            stopping = Condition("not-stopping", ok=False, message="the process is stopping")
            readiness = readiness.with_condition(stopping)
        status = HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return page(orjson.dumps(readiness.to_json()), JSON, status)

    def _exposition(self, request: web.BaseRequest) -> web.Response:
        return page(*self._metrics.exposition(request.headers.get(hdrs.ACCEPT, "")))

    def _refused(self, status: HTTPStatus, message: str) -> web.Response:
        self._metrics.call_refused(status)
        return self._last(refusal(status, message))

    def _last(self, response: web.Response) -> web.Response:
        """Close the connection after this response if it is to be the last one."""
        if self._is_last:
            response.force_close()
        return response

    @property
    def _is_last(self) -> bool:
        return self.in_flight.draining or not self._is_active()


async def _read(request: web.BaseRequest) -> bytes:
    """Return the body of a POST. Raises ReviewError, ConnectionError.

    Its content type is not looked at: whether it is a question is seen by itself.
    """
    if request.method != hdrs.METH_POST:
        raise ReviewError("questions are sent by POST", HTTPStatus.METHOD_NOT_ALLOWED)
    if hdrs.CONTENT_ENCODING in request.headers:
        raise ReviewError("the body must not be compressed", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return await read_slowly(request, BODY_SECONDS, MAX_BODY_BYTES)
