# SPDX-License-Identifier: Apache-2.0
"""A server that answers as Prometheus does, and as it should not: nothing unreal comes of it."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from policies.telemetry.quantities import Quantity
from reconciler.telemetry.access import HttpAccess
from reconciler.telemetry.http import Http, HttpLimits, checked_url
from reconciler.telemetry.prometheus import Prometheus, PrometheusSettings
from reconciler.telemetry.source import SourceError
from tests.support.certificates import make_pki
from tests.support.telemetry import NOW, Taken

Handler = Callable[[web.Request, str], Awaitable[web.StreamResponse]]

_UTIL = "DCGM_FI_DEV_GPU_UTIL"
_LABELS = {"__name__": _UTIL, "Hostname": "node-a", "gpu": "0", "UUID": "GPU-0"}


def _series(*values: tuple[float, str], **labels: str) -> dict[str, Any]:
    return {"metric": {**_LABELS, **labels}, "values": [list(each) for each in values]}


def _matrix(*series: object, **more: object) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}, **more}


@asynccontextmanager
async def _served(
    handler: Handler,
    *,
    access: HttpAccess | None = None,
    limits: HttpLimits | None = None,
    tls: ssl.SSLContext | None = None,
    **settings: Any,
) -> AsyncIterator[Prometheus]:
    async def query(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        return await handler(request, str(form["query"]))

    app = web.Application()
    app.router.add_post("/prefix/api/v1/query", query)
    access, limits = access or HttpAccess(), limits or HttpLimits(seconds=5.0)
    server = TestServer(app, scheme="http" if tls is None else "https")
    await server.start_server(ssl=tls)
    try:
        url = str(server.make_url("/prefix/"))
        made = PrometheusSettings(url, access, exporters=("dcgm",), limits=limits, **settings)
        async with Http(access, limits) as http:
            yield Prometheus(made, http)
    finally:
        await server.close()


def _only(answers: Mapping[str, object]) -> Handler:
    async def handler(_request: web.Request, query: str) -> web.Response:
        return web.json_response(answers.get(query.partition("[")[0], _matrix()))

    return handler


async def test_every_value_has_the_time_at_which_it_was_scraped() -> None:
    answers = {_UTIL: _matrix(_series((NOW - 30, "10"), (NOW - 0.25, "40")))}
    taken = Taken()
    async with _served(_only(answers)) as source:
        report = await source.read(frozenset(), taken)
    (sample,) = taken.samples
    assert sample.value == pytest.approx(0.4)
    assert sample.time == NOW - 0.25
    assert report.problems == ()
    assert report.malformed == 0


async def test_queries_are_ranges_of_raw_samples_and_can_be_narrowed_or_replaced() -> None:
    asked: list[str] = []

    async def handler(_request: web.Request, query: str) -> web.Response:
        asked.append(query)
        return web.json_response(_matrix())

    queries = {_UTIL: 'DCGM_FI_DEV_GPU_UTIL{job="own"}'}
    async with _served(
        handler, matchers='cluster="a"', queries=queries, range_seconds=45
    ) as source:
        await source.read(frozenset(), Taken())
    assert 'DCGM_FI_DEV_GPU_UTIL{job="own"}[45000ms]' in asked
    assert 'DCGM_FI_DEV_FB_USED{cluster="a"}[45000ms]' in asked


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
async def test_values_that_are_no_numbers_are_handed_over_for_the_state_to_refuse(
    value: str,
) -> None:
    taken = Taken()
    async with _served(_only({_UTIL: _matrix(_series((NOW, value)))})) as source:
        await source.read(frozenset(), taken)
    assert len(taken.samples) == 1


@pytest.mark.parametrize(
    "series",
    [
        {"metric": _LABELS, "histograms": [[NOW, {}]]},
        {"metric": _LABELS, "values": []},
        {"metric": _LABELS, "values": [[NOW]]},
        {"metric": _LABELS, "values": [[NOW, "forty"]]},
        {"metric": _LABELS, "values": [["now", "40"]]},
        {"metric": None, "values": [[NOW, "40"]]},
        {"values": [[NOW, "40"]]},
        None,
        "series",
    ],
)
async def test_a_malformed_series_is_counted_and_the_others_are_taken(series: object) -> None:
    taken = Taken()
    answers = {_UTIL: _matrix(series, _series((NOW, "40")))}
    async with _served(_only(answers)) as source:
        report = await source.read(frozenset(), taken)
    assert taken.values(Quantity.UTILISATION) == {"node-a/GPU-0": pytest.approx(0.4)}
    assert report.malformed == 1


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"status": "success"},
        {"status": "success", "data": {"resultType": "vector", "result": []}},
        {"status": "success", "data": {"resultType": "matrix", "result": {}}},
        {"status": "success", "data": {"resultType": "matrix"}},
        {"status": "error", "errorType": "timeout", "error": "query timed out"},
        "success",
        None,
    ],
)
async def test_an_answer_of_another_shape_is_an_error_and_no_traceback(answer: object) -> None:
    async def handler(_request: web.Request, _query: str) -> web.Response:
        return web.json_response(answer)

    async with _served(handler) as source:
        with pytest.raises(SourceError):
            await source.read(frozenset(), Taken())


async def test_a_part_of_an_answer_is_an_error() -> None:
    async def handler(request: web.Request, _query: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"status":"success","data":{"resultType":"matrix","result":[')
        assert request.transport is not None
        request.transport.abort()
        return response

    async with _served(handler) as source:
        with pytest.raises(SourceError):
            await source.read(frozenset(), Taken())


async def test_text_that_ends_early_within_a_whole_answer_is_an_error() -> None:
    async def handler(_request: web.Request, _query: str) -> web.Response:
        return web.Response(text='{"status":"success","data":{"resultT')

    async with _served(handler) as source:
        with pytest.raises(SourceError, match="no JSON object, or only a part"):
            await source.read(frozenset(), Taken())


async def test_what_prometheus_refuses_is_told_with_its_own_words() -> None:
    async def handler(_request: web.Request, _query: str) -> web.Response:
        content = {"status": "error", "errorType": "bad_data", "error": "parse error: unexpected"}
        return web.json_response(content, status=400)

    async with _served(handler) as source:
        with pytest.raises(SourceError, match=r"status 400: parse error: unexpected"):
            await source.read(frozenset(), Taken())


async def test_a_page_of_a_proxy_is_quoted_shortened_and_its_wish_to_wait_is_kept() -> None:
    async def handler(_request: web.Request, _query: str) -> web.Response:
        text = "<html>\nnot now" + "x" * 10_000
        return web.Response(status=503, text=text, headers={"Retry-After": "17"})

    async with _served(handler) as source:
        with pytest.raises(SourceError, match="status 503: <html> not now") as caught:
            await source.read(frozenset(), Taken())
    assert caught.value.retry_after_seconds == 17
    assert len(str(caught.value)) < 500


async def test_a_redirect_is_not_followed() -> None:
    asked: list[str] = []

    async def handler(request: web.Request, query: str) -> web.Response:
        asked.append(query)
        raise web.HTTPFound(str(request.url))

    async with _served(handler) as source:
        with pytest.raises(SourceError, match="status 302"):
            await source.read(frozenset(), Taken())
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("declared", [True, False])
async def test_a_huge_answer_is_given_up_at_the_limit(*, declared: bool) -> None:
    sent = 0

    async def handler(request: web.Request, _query: str) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        if declared:
            response.content_length = 100 * 2**20
        await response.prepare(request)
        for _ in range(100):
            await response.write(b" " * 2**20)
            sent += 1
        return response

    limits = HttpLimits(seconds=5.0, max_bytes=2**20)
    async with _served(handler, limits=limits) as source:
        with pytest.raises(SourceError, match="larger than 1048576 bytes"):
            await source.read(frozenset(), Taken())


async def test_a_slow_answer_is_given_up_in_time() -> None:
    async def handler(request: web.Request, _query: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:  # a byte now and then must not keep it alive
            await response.write(b" ")
            await asyncio.sleep(0.01)

    limits = HttpLimits(seconds=0.2)
    async with _served(handler, limits=limits, concurrency=20) as source:
        async with asyncio.timeout(5):
            with pytest.raises(SourceError, match=r"no answer within 0\.2 s"):
                await source.read(frozenset(), Taken())


async def test_one_metric_that_fails_does_not_take_the_others_with_it() -> None:
    async def handler(_request: web.Request, query: str) -> web.Response:
        if query.startswith(_UTIL):
            return web.json_response(_matrix(_series((NOW, "40"))))
        return web.json_response({"status": "error", "error": "too many samples"}, status=422)

    taken = Taken()
    async with _served(handler) as source:
        report = await source.read(frozenset(), taken)
    assert len(taken.samples) == 1
    assert any("too many samples" in problem for problem in report.problems)


async def test_only_metrics_of_the_wanted_quantities_are_asked_for() -> None:
    asked: set[str] = set()

    async def handler(_request: web.Request, query: str) -> web.Response:
        asked.add(query.partition("[")[0])
        return web.json_response(_matrix())

    async with _served(handler, quantities=frozenset({Quantity.UTILISATION})) as source:
        await source.read(frozenset(), Taken())
    assert _UTIL in asked
    assert not [name for name in asked if "FB" in name or "TEMP" in name]


async def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    answers = {_UTIL: _matrix(_series((NOW, "40")), warnings=["store a did not answer"])}
    with caplog.at_level(logging.WARNING):
        async with _served(_only(answers)) as source:
            for _ in range(3):
                await source.read(frozenset(), Taken())
    assert [record.getMessage() for record in caplog.records] == [
        "Prometheus warns: store a did not answer"
    ]


async def test_token_and_tenant_are_sent_and_a_token_file_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.telemetry.http._RENEW_SECONDS", 0.0)
    seen: set[tuple[str | None, str | None]] = set()

    async def handler(request: web.Request, _query: str) -> web.Response:
        seen.add((request.headers.get("Authorization"), request.headers.get("X-Scope-OrgID")))
        return web.json_response(_matrix())

    token = tmp_path / "token"
    token.write_text("first\n", encoding="utf-8")
    access = HttpAccess(token_file=str(token), tenant="gpu-team")
    async with _served(handler, access=access) as source:
        await source.read(frozenset(), Taken())
        token.write_text("second\n", encoding="utf-8")
        await source.read(frozenset(), Taken())
    assert seen == {("Bearer first", "gpu-team"), ("Bearer second", "gpu-team")}


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"a\nb"])
async def test_a_token_file_that_cannot_be_used_is_an_error(
    tmp_path: Path, content: bytes | None
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    async with _served(_only({}), access=HttpAccess(token_file=str(token))) as source:
        with pytest.raises(SourceError):
            await source.read(frozenset(), Taken())


async def test_tls_is_checked_against_the_ca_that_is_given(tmp_path: Path) -> None:
    files = make_pki(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    taken = Taken()
    answers = _only({_UTIL: _matrix(_series((NOW, "40")))})
    async with _served(answers, access=HttpAccess(ca_file=str(files.ca)), tls=context) as source:
        await source.read(frozenset(), taken)
    assert len(taken.samples) == 1
    async with _served(answers, tls=context) as source:
        with pytest.raises(SourceError, match="certificate"):
            await source.read(frozenset(), taken)


async def test_a_server_that_is_not_there_is_an_error(unused_tcp_port: int) -> None:
    settings = PrometheusSettings(f"http://127.0.0.1:{unused_tcp_port}")
    async with Http(settings.access, settings.limits) as http:
        with pytest.raises(SourceError):
            await Prometheus(settings, http).read(frozenset(), Taken())


@pytest.mark.parametrize(
    "url", ["", "prometheus:9090", "ftp://a", "http://", "http://a?x=1", "http://u:p@a"]
)
def test_an_address_that_cannot_be_called_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        PrometheusSettings(url)


def test_a_password_in_an_address_is_not_shown() -> None:
    with pytest.raises(ValueError, match="token file") as caught:
        checked_url("http://user:hunter2@prometheus", "the address")
    assert "hunter2" not in str(caught.value)


def test_a_query_for_a_metric_that_is_not_read_is_refused() -> None:
    with pytest.raises(ValueError, match="'up' is no metric that Sluice reads"):
        PrometheusSettings("http://a", queries={"up": "up"})
    with pytest.raises(ValueError, match="exclude each other"):
        HttpAccess(token="a", token_file="b")


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(HttpAccess(token="secret"))
