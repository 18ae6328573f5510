# SPDX-License-Identifier: Apache-2.0
"""Every failure of the API has one type of ours."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    PastTermError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    error_from_response,
    error_from_status,
)


def status(code: int, reason: str = "", **more: Any) -> bytes:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return orjson.dumps({**body, "message": f"because {code}", **more})


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", InvalidError),
        (401, "Unauthorized", UnauthorizedError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (410, "Expired", GoneError),
        (410, "Gone", GoneError),
        (422, "Invalid", InvalidError),
        (429, "TooManyRequests", TooManyRequestsError),
        (500, "InternalError", UnavailableError),
        (503, "ServiceUnavailable", UnavailableError),
        (504, "Timeout", UnavailableError),
        (418, "", ApiError),
    ],
)
def test_each_status_has_its_type(code: int, reason: str, kind: type[ApiError]) -> None:
    error = error_from_response(code, status(code, reason))
    assert type(error) is kind
    assert (error.status, error.reason, str(error)) == (code, reason, f"because {code}")


def test_what_the_webhook_says_of_a_past_leader_has_a_type_of_its_own() -> None:
    message = (
        'admission webhook "validate.sluice.dev" denied the request: sluice: [PastTerm] term 3'
    )
    error = error_from_response(403, status(403, "Forbidden", message=message), is_write=True)
    assert type(error) is PastTermError
    assert not error.may_have_happened
    other = message.replace("PastTerm", "OwnedKey")
    assert type(error_from_status({"code": 403, "message": other})) is ForbiddenError


def test_a_version_from_the_future_calls_for_a_new_list() -> None:
    """After a restore of etcd, say; the server calls it a timeout."""
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}]}
    assert isinstance(error_from_response(504, status(504, "Timeout", details=details)), GoneError)


def test_the_servers_wish_to_wait_is_kept() -> None:
    header = error_from_response(429, status(429), retry_after="7")
    details = error_from_response(429, status(429, details={"retryAfterSeconds": 3}))
    assert (header.retry_after_seconds, details.retry_after_seconds) == (7.0, 3.0)


@pytest.mark.parametrize("header", [None, "", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", "²"])
def test_a_wish_that_is_no_number_of_seconds_is_none(header: str | None) -> None:
    assert error_from_response(429, b"", retry_after=header).retry_after_seconds is None


@pytest.mark.parametrize(
    ("code", "is_write", "expected"),
    [
        (500, True, True),
        (504, True, True),
        (500, False, False),
        (409, True, False),
        (429, True, False),
    ],
)
def test_only_a_failed_write_may_have_happened(code: int, is_write: bool, expected: bool) -> None:
    error = error_from_response(code, status(code), is_write=is_write)
    assert error.may_have_happened is expected


@pytest.mark.parametrize(
    "body", [b"", b"<html>bad gateway</html>", b"{", b"[]", b'{"kind":"Pod"}', b"\xff\xfe"]
)
def test_a_body_that_is_no_status_is_survived(body: bytes) -> None:
    error = error_from_response(502, body)
    assert isinstance(error, UnavailableError)
    assert str(error).startswith("HTTP status 502")


def test_a_long_page_of_a_proxy_is_shortened() -> None:
    assert len(str(error_from_response(502, b"x" * 100_000))) < 400


LEAVES = st.none() | st.booleans() | st.integers() | st.sampled_from(["", "Expired", "x"])
DETAILS = st.fixed_dictionaries(
    {}, optional={"causes": LEAVES | st.lists(LEAVES, max_size=2), "retryAfterSeconds": LEAVES}
)
FIELDS = st.sampled_from(["code", "reason", "message", "details"])


@given(st.dictionaries(FIELDS, LEAVES | DETAILS))
def test_any_status_object_becomes_an_error(body: dict[str, object]) -> None:
    assert isinstance(error_from_status(body), ApiError)


@pytest.mark.parametrize(
    ("message", "may_have_happened"),
    [
        ('Internal error occurred: failed calling webhook "x.example": no endpoints', False),
        ("etcdserver: request timed out", True),
    ],
)
def test_a_write_that_a_webhook_was_to_admit_and_could_not_has_not_happened(
    message: str, may_have_happened: bool
) -> None:
    status = {"code": 500, "reason": "InternalError", "message": message}
    assert error_from_status(status, is_write=True).may_have_happened is may_have_happened
