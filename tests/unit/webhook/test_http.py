# SPDX-License-Identifier: Apache-2.0
"""The endpoints over real sockets and TLS: what is answered to whatever is sent."""

import asyncio
import io
import json
import logging
import ssl
from collections.abc import AsyncIterator
from typing import cast

import aiohttp
import pytest

from policies.model.decision import Decision
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.request import Request
from reconciler.runtime.audit_record import AuditEntry
from reconciler.runtime.health import Condition, Readiness
from tests.support.certificates import Pki
from tests.support.reviews import UID, body, pod, review
from tests.support.serving import (
    REWRITTEN,
    RecordingAudit,
    client,
    make_serving,
    running,
    sample,
)
from tests.support.waiting import until
from webhook.reading import MAX_BODY_BYTES
from webhook.server import WebhookServer
from webhook.serving import Serving

JSON_HEADERS = {"Content-Type": "application/json"}


@pytest.fixture
def serving() -> Serving:
    return make_serving()


@pytest.fixture
async def server(serving: Serving, pki: Pki) -> AsyncIterator[WebhookServer]:
    async with running(serving, pki) as started:
        yield started


@pytest.fixture
async def http(server: WebhookServer, pki: Pki) -> AsyncIterator[aiohttp.ClientSession]:
    async with client(server, pki) as session:
        yield session


async def raw(server: WebhookServer, pki: Pki, sent: bytes, *, eof: bool = False) -> bytes:
    """Send bytes over TLS and return everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", server.port, ssl=pki.client_context(), server_hostname="localhost"
    )
    try:
        writer.write(sent)
        if eof:
            writer.close()
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


async def recorded(serving: Serving, count: int) -> list[AuditEntry]:
    """Return what has been audited, once it is so many; that lags behind the answers."""
    entries = cast("RecordingAudit", serving.audit).entries
    await until(lambda: len(entries) >= count)
    return entries


def post(path: str, sent: bytes, *headers: str, version: str = "1.1") -> bytes:
    """Return a POST as bytes, with its length unless the headers say otherwise."""
    lines = [f"POST {path} HTTP/{version}", "Host: localhost", "Content-Type: application/json"]
    if not any(header.lower().startswith("transfer-encoding") for header in headers):
        lines.append(f"Content-Length: {len(sent)}")
    return "\r\n".join([*lines, *headers, "", ""]).encode() + sent


@pytest.mark.parametrize(("path", "phase"), [("/mutate", "Mutate"), ("/validate", "Validate")])
async def test_a_review_is_answered_with_its_uid(
    http: aiohttp.ClientSession, serving: Serving, path: str, phase: str
) -> None:
    async with http.post(f"{path}?timeout=10s", data=body(review()), headers=JSON_HEADERS) as got:
        answered = await got.json()
        assert (got.status, got.content_type) == (200, "application/json")
        assert "Date" in got.headers
    assert answered["response"]["uid"] == UID
    assert answered["response"]["allowed"] is True
    (entry,) = await recorded(serving, 1)
    assert entry.request.phase == phase


async def test_many_reviews_share_one_connection(
    server: WebhookServer, pki: Pki, serving: Serving
) -> None:
    connector = aiohttp.TCPConnector(ssl=pki.client_context(), limit=1)
    url = f"https://localhost:{server.port}"
    uids = [f"uid-{number}" for number in range(20)]
    async with aiohttp.ClientSession(url, connector=connector) as session:
        for uid in uids:
            async with session.post("/mutate", json=review(uid=uid)) as got:
                assert (await got.json())["response"]["uid"] == uid
    assert [entry.request.uid for entry in await recorded(serving, 20)] == uids


async def test_pipelined_reviews_are_answered_in_order(server: WebhookServer, pki: Pki) -> None:
    first = post("/mutate", body(review(uid="first")))
    second = post("/mutate", body(review(uid="second")), "Connection: close")
    answered = await raw(server, pki, first + second)
    assert answered.count(b"HTTP/1.1 200 OK") == 2
    assert answered.index(b'"uid":"first"') < answered.index(b'"uid":"second"')


async def test_a_client_of_http_1_0_gets_an_answer_it_understands(
    server: WebhookServer, pki: Pki
) -> None:
    answered = await raw(server, pki, post("/mutate", body(review()), version="1.0"))
    assert answered.startswith(b"HTTP/1.0 200 OK\r\n")
    assert UID.encode() in answered


async def test_a_chunked_body_is_read(server: WebhookServer, pki: Pki) -> None:
    sent = body(review())
    half = len(sent) // 2
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in (sent[:half], sent[half:], b""))
    headers = ("Transfer-Encoding: chunked", "Connection: close")
    answered = await raw(server, pki, post("/mutate", chunks, *headers))
    assert answered.startswith(b"HTTP/1.1 200 OK\r\n")
    assert UID.encode() in answered


async def test_a_client_that_waits_for_a_continue_gets_one(server: WebhookServer, pki: Pki) -> None:
    sent = body(review())
    head = post("/mutate", b"", "Expect: 100-continue", "Connection: close")
    head = head.replace(b"Content-Length: 0", b"Content-Length: %d" % len(sent))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", server.port, ssl=pki.client_context(), server_hostname="localhost"
    )
    writer.write(head)
    async with asyncio.timeout(10):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(sent)
        assert b"HTTP/1.1 200 OK" in await reader.read()
    writer.close()


async def test_two_objects_of_three_mebibytes_fit(http: aiohttp.ClientSession) -> None:
    large = pod()
    large["metadata"]["annotations"] = {"x": "y" * (3 * 1024 * 1024 - 1000)}
    given = review(large, operation="UPDATE", oldObject=large)
    async with http.post("/validate", data=io.BytesIO(body(given)), headers=JSON_HEADERS) as got:
        assert got.status == 200
        assert (await got.json())["response"]["uid"] == UID


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_larger_body_is_refused(
    http: aiohttp.ClientSession, serving: Serving, *, chunked: bool
) -> None:
    large = b"x" * (MAX_BODY_BYTES + 1)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(large), 65536):
            yield large[start : start + 65536]

    data = chunks() if chunked else io.BytesIO(large)
    async with http.post("/mutate", data=data, headers=JSON_HEADERS) as got:
        assert got.status == 413
        assert (await got.json())["reason"] == "RequestEntityTooLarge"
    assert sample(serving.metrics, "sluice_http_refusals_total", code="413") == 1


async def test_a_body_of_exactly_the_limit_is_read(http: aiohttp.ClientSession) -> None:
    sent = body(review())
    padded = io.BytesIO(sent + b" " * (MAX_BODY_BYTES - len(sent)))
    async with http.post("/mutate", data=padded, headers=JSON_HEADERS) as got:
        assert got.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/yaml"},
        {"Content-Type": "application/jsonx"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
async def test_another_kind_of_content_is_refused(
    http: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    async with http.post("/mutate", data=body(review()), headers=headers) as got:
        assert got.status == 415


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "Application/JSON", "application/json ;q=1"]
)
async def test_json_with_parameters_is_json(http: aiohttp.ClientSession, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    async with http.post("/mutate", data=body(review()), headers=headers) as got:
        assert got.status == 200


async def test_no_review_is_a_status_with_the_reason(
    http: aiohttp.ClientSession, serving: Serving
) -> None:
    async with http.post("/mutate", json={"kind": "Pod"}) as got:
        assert got.status == 400
        assert await got.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "sluice: the body is not an AdmissionReview of admission.k8s.io/v1",
            "reason": "BadRequest",
            "code": 400,
        }
    assert sample(serving.metrics, "sluice_http_refusals_total", code="400") == 1
    assert cast("RecordingAudit", serving.audit).entries == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/mutate", 405),
        ("PUT", "/validate", 405),
        ("POST", "/healthz", 405),
        ("HEAD", "/readyz", 405),
        ("GET", "/", 404),
        ("POST", "/mutate/", 404),
        ("POST", "/Mutate", 404),
        ("GET", "/metrics/../healthz%00", 404),
        ("OPTIONS", "/mutate", 405),
    ],
)
async def test_other_methods_and_paths_are_told_apart(
    server: WebhookServer, pki: Pki, method: str, path: str, status: int
) -> None:
    sent = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    assert (await raw(server, pki, sent)).startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize(
    "query", ["?timeout=0s", "?timeout=-5s", "?timeout=x", "?" + "a=1&" * 40, "?timeout=%ff", "?"]
)
async def test_a_strange_timeout_means_the_default(http: aiohttp.ClientSession, query: str) -> None:
    async with http.post(f"/mutate{query}", json=review()) as got:
        assert (await got.json())["response"]["allowed"] is True


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 hello",
        b"GARBAGE\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
        post("/mutate", b"zz\r\n", "Transfer-Encoding: chunked"),
    ],
)
async def test_what_is_not_http_is_a_bad_request_without_a_traceback(
    server: WebhookServer, pki: Pki, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert b" 400 Bad Request\r\n" in await raw(server, pki, sent)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_client_that_hangs_up_in_the_middle_leaves_no_trace(
    server: WebhookServer,
    pki: Pki,
    http: aiohttp.ClientSession,
    serving: Serving,
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = post("/mutate", body(review()))
    for cut in (1, 20, 130, len(whole) - 1):
        assert await raw(server, pki, whole[:cut], eof=True) == b""
    async with http.post("/mutate", json=review()) as got:
        assert got.status == 200
    assert len(await recorded(serving, 1)) == 1
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_body_that_does_not_come_in_time_is_given_up(pki: Pki) -> None:
    sent = post("/mutate?timeout=50ms", body(review()), "Connection: close")[:-1]
    async with running(make_serving(), pki, lingering=0.05) as server:
        answered = await raw(server, pki, sent)
    assert answered.startswith(b"HTTP/1.1 408 ")
    assert b"did not come within 0.05 s" in answered


async def test_a_connection_that_sends_no_request_is_closed(pki: Pki) -> None:
    async with running(make_serving(), pki, keepalive=0.1) as server:
        assert await raw(server, pki, b"POST /mutate HTTP/1.1\r\nHost:") == b""


async def test_plain_http_is_no_way_in(server: WebhookServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(post("/mutate", body(review())))
    async with asyncio.timeout(10):
        assert b"HTTP" not in await reader.read()
    writer.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_current_tls_is_spoken(
    server: WebhookServer, pki: Pki, version: ssl.TLSVersion
) -> None:
    context = pki.client_context()
    context.minimum_version = context.maximum_version = version
    _, writer = await asyncio.open_connection("localhost", server.port, ssl=context)
    assert writer.get_extra_info("ssl_object").version() == version.name.replace("_", ".")
    writer.close()


async def test_old_tls_is_refused(server: WebhookServer, pki: Pki) -> None:
    context = pki.client_context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        await asyncio.open_connection("localhost", server.port, ssl=context)


async def test_a_review_that_fails_inside_is_still_answered_with_200(
    pki: Pki, caplog: pytest.LogCaptureFixture
) -> None:
    def decide(_policies: PolicySet, _facts: Facts, _request: Request) -> Decision:
        raise ZeroDivisionError

    async with (
        running(make_serving(decide=decide), pki) as server,
        client(server, pki) as http,
        http.post("/validate", json=review()) as got,
    ):
        assert got.status == 200
        response = (await got.json())["response"]
    assert (response["uid"], response["allowed"]) == (UID, False)
    assert response["status"]["code"] == 500
    assert "ZeroDivisionError" in caplog.text


async def test_health_says_ok_whatever_else_is_wrong(pki: Pki) -> None:
    bad = Readiness((Condition("policies-loaded", ok=False, message="none"),))
    serving = make_serving(readiness=lambda: bad, policies=lambda: None)
    async with (
        running(serving, pki) as server,
        client(server, pki) as http,
        http.get("/healthz") as got,
    ):
        assert (got.status, await got.text()) == (200, "ok\n")


async def test_readiness_names_what_fails(pki: Pki) -> None:
    conditions = (
        Condition("policies-loaded", ok=True, message="generation 7c1f"),
        Condition("documents-valid", ok=False, message="a.yaml:3: no", required=False),
    )
    state = [Readiness(conditions)]
    serving = make_serving(readiness=lambda: state[0])
    async with running(serving, pki) as server, client(server, pki) as http:
        async with http.get("/readyz") as got:
            assert got.status == 200
            assert await got.json() == {
                "ready": True,
                "conditions": [
                    {
                        "name": "policies-loaded",
                        "ok": True,
                        "required": True,
                        "message": "generation 7c1f",
                    },
                    {
                        "name": "documents-valid",
                        "ok": False,
                        "required": False,
                        "message": "a.yaml:3: no",
                    },
                ],
            }
        state[0] = Readiness((Condition("facts-synced", ok=False),))
        async with http.get("/readyz") as got:
            assert got.status == 503
            assert (await got.json())["ready"] is False


async def test_metrics_are_in_the_format_that_is_asked_for(http: aiohttp.ClientSession) -> None:
    async with http.post("/mutate", json=review()) as got:
        assert got.status == 200
    async with http.get("/metrics") as got:
        assert got.headers["Content-Type"].startswith("text/plain; version=")
        text = await got.text()
    assert "sluice_review_duration_seconds_bucket{" in text
    (line,) = [line for line in text.splitlines() if line.startswith("sluice_reviews_total{")]
    assert line.endswith(" 1.0")
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with http.get("/metrics", headers=accept) as got:
        assert got.headers["Content-Type"].startswith("application/openmetrics-text")
        assert (await got.text()).endswith("# EOF\n")


async def test_an_answer_of_a_thousand_containers_arrives_whole(pki: Pki) -> None:
    patch = tuple(
        {"op": "add", "path": f"/spec/containers/{number}/env", "value": ["x" * 1000]}
        for number in range(1000)
    )
    decision = Decision(REWRITTEN.verdict, REWRITTEN.generation, patch=patch)
    async with (
        running(make_serving(decision), pki) as server,
        client(server, pki) as http,
        http.post("/mutate", json=review()) as got,
    ):
        answered = json.loads(await got.read())
    assert len(answered["response"]["patch"]) > 1_000_000


async def test_a_client_that_sends_without_reading_is_held_back(pki: Pki) -> None:
    """What it has not read yet must not pile up in memory."""
    patch = ({"op": "add", "path": "/spec/containers/0/env", "value": ["x" * 60_000]},)
    serving = make_serving(Decision(REWRITTEN.verdict, REWRITTEN.generation, patch=patch))
    answered = cast("RecordingAudit", serving.audit).entries
    count = 300
    async with running(serving, pki) as server:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=pki.client_context(), server_hostname="localhost"
        )
        try:
            writer.write(post("/mutate", body(review())) * count)
            before = -1
            while len(answered) > before:  # until it goes no further
                before = len(answered)
                await asyncio.sleep(0.2)
            assert before < count
            async with asyncio.timeout(20):
                for _ in range(count):
                    head = await reader.readuntil(b"\r\n\r\n")
                    await reader.readexactly(int(head.split(b"Content-Length: ")[1]))
        finally:
            writer.transport.abort()
