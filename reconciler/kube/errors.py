# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a call to the Kubernetes API, in our own terms.

Every HTTP status, Status object and transport failure is translated here, once, so that callers
choose by type. What to do about an error (retry, list again, give up) is not decided here.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from policies.model.reasons import Reason

_SHOWN_CHARACTERS: Final = 300
_WEBHOOK_FAILED: Final = "failed calling webhook"
"""Part of what a server says, with 500, where a webhook that must answer does not: nothing has been
stored, for admission comes first (apiserver `pkg/admission/plugin/webhook`)."""
_PAST_TERM: Final = f"sluice: [{Reason.PAST_TERM}]"
"""How Sluice's own webhook begins such a refusal."""
_FORBIDDEN: Final = 403
_SERVER_ERROR: Final = 500
_TOO_MANY_REQUESTS: Final = 429


class AccessError(Exception):
    """A kubeconfig or service account that cannot be used; the message names the file."""


class ApiError(Exception):
    """A call that failed. `status` is the HTTP status, 0 where no answer came.

    `may_have_happened` is True for a write whose outcome is unknown: it was sent, and neither
    success nor a clean refusal came back.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        retry_after_seconds: float | None = None,
        may_have_happened: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds
        self.may_have_happened = may_have_happened


class UnauthorizedError(ApiError):
    """401: the credentials are not, or no longer, accepted."""


class ForbiddenError(ApiError):
    """403: not permitted, or denied by admission."""


class PastTermError(ForbiddenError):
    """403 on a release: another leads now, and nothing was stored."""


class NotFoundError(ApiError):
    """404: no such object, or no such resource type."""


class ConflictError(ApiError):
    """409: the object has changed; look again."""


class AlreadyExistsError(ApiError):
    """409 on create: an object of that name exists."""


class GoneError(ApiError):
    """410: the resourceVersion or continue token is compacted, or not known yet; list again."""


class InvalidError(ApiError):
    """400 or 422: the server will never accept this request as it is."""


class TooManyRequestsError(ApiError):
    """429: throttled, or (BudgetError) an eviction that may not be for now."""


class BudgetError(TooManyRequestsError):
    """429 on an eviction: a disruption budget forbids it for now; nothing else need wait."""


class UnavailableError(ApiError):
    """The server could not be reached, did not answer in time, or failed (5xx)."""


class MalformedAnswerError(UnavailableError):
    """An answer that is not what the API defines, such as JSON that ends in the middle."""


class TimedOutError(UnavailableError):
    """No answer within the deadline."""


class SilenceError(UnavailableError):
    """A watch that is open but has sent nothing for longer than agreed."""


_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    _TOO_MANY_REQUESTS: TooManyRequestsError,
}


def error_names() -> tuple[str, ...]:
    """Return what every kind of error is called, as metrics label them."""
    return tuple(sorted({each.__name__ for each in _kinds(ApiError)}))


def _kinds(error: type[ApiError]) -> Iterator[type[ApiError]]:
    yield error
    for kind in error.__subclasses__():
        yield from _kinds(kind)


def error_from_status(
    status: Mapping[str, object],
    *,
    retry_after_seconds: float | None = None,
    is_write: bool = False,
) -> ApiError:
    """Return the error that a `Status` object describes, from a response or an ERROR event.

    Source: apimachinery `pkg/apis/meta/v1/types.go` (Status, StatusReason).
    """
    code = status.get("code")
    number = code if isinstance(code, int) else 0
    reason, message = _text(status.get("reason")), _text(status.get("message"))
    details = status.get("details")
    is_unknown = number >= _SERVER_ERROR and _WEBHOOK_FAILED not in message
    return _kind(number, reason, message, details)(
        message or reason or f"HTTP status {number}",
        status=number,
        reason=reason,
        retry_after_seconds=_retry_after(details, retry_after_seconds),
        may_have_happened=is_write and is_unknown,
    )


def error_from_response(
    code: int, body: bytes, *, retry_after: str | None = None, is_write: bool = False
) -> ApiError:
    """Return the error of a response whose HTTP status is none of success.

    A body that is no `Status` (a proxy's page, text) is quoted, shortened, in the message.
    """
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = " ".join(body[:_SHOWN_CHARACTERS].decode(errors="replace").split())
        status = {"message": f"HTTP status {code}: {text}" if text else f"HTTP status {code}"}
    seconds = (
        float(retry_after)
        if retry_after and retry_after.isascii() and retry_after.isdigit()
        else None
    )
    return error_from_status(
        {**status, "code": code}, retry_after_seconds=seconds, is_write=is_write
    )


def _kind(code: int, reason: str, message: str, details: object) -> type[ApiError]:
    if reason == "Expired" or _has_cause(details, "ResourceVersionTooLarge"):
        return GoneError
    if reason == "AlreadyExists":
        return AlreadyExistsError
    if code == _FORBIDDEN and _PAST_TERM in message:
        return PastTermError
    if code >= _SERVER_ERROR:
        return UnavailableError
    if code == _TOO_MANY_REQUESTS and _has_cause(details, "DisruptionBudget"):
        return BudgetError
    return _BY_STATUS.get(code, ApiError)


def _has_cause(details: object, reason: str) -> bool:
    causes = details.get("causes") if isinstance(details, Mapping) else None
    return isinstance(causes, list) and any(
        isinstance(cause, Mapping) and cause.get("reason") == reason for cause in causes
    )


def _retry_after(details: object, from_header: float | None) -> float | None:
    seconds = details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
    if isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0:
        return float(seconds)
    return from_header


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
