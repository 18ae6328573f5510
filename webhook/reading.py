# SPDX-License-Identifier: Apache-2.0
"""Reads the body of a call within bounds of size and time. Raises ReviewError past them."""

import asyncio
from http import HTTPStatus
from typing import Final

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestPayloadError

from webhook.envelope import ReviewError
from webhook.responses import JSON

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
"""Two objects of 3 MiB, the most that the API server stores, and the envelope around them."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


def read_at_once(request: web.BaseRequest) -> bytes | None:
    """Return the body of a POST of JSON if it has come as a whole, which is the usual case.

    Raises ReviewError for any other kind of request.
    """
    if request.method != hdrs.METH_POST:
        raise ReviewError("reviews are sent by POST", HTTPStatus.METHOD_NOT_ALLOWED)
    headers = request.headers
    content_type = headers.get(hdrs.CONTENT_TYPE, "")
    if content_type != JSON and content_type.partition(";")[0].strip().lower() != JSON:
        raise ReviewError(f"the content type must be {JSON}", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    if hdrs.CONTENT_ENCODING in headers:
        raise ReviewError("the body must not be compressed", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    content = request.content
    if not content.is_eof() or content.exception() is not None:
        return None
    body = content.read_nowait()
    if len(body) > MAX_BODY_BYTES:
        raise _too_large(MAX_BODY_BYTES)
    return body


async def read_slowly(
    request: web.BaseRequest, seconds: float, max_bytes: int = MAX_BODY_BYTES
) -> bytes:
    """Return the body once the rest of it has come. Raises ReviewError, ConnectionError."""
    if (request.content_length or 0) > max_bytes:
        raise _too_large(max_bytes)
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.transport:
        request.transport.write(_CONTINUE)
    # Whole nodes are tens of MB: an array that grows would be copied again and again.
    chunks, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            while chunk := await request.content.readany():
                chunks.append(chunk)
                size += len(chunk)
                if size > max_bytes:
                    raise _too_large(max_bytes)
    except TimeoutError:
        message = f"the body did not come within {seconds:g} s"
        raise ReviewError(message, HTTPStatus.REQUEST_TIMEOUT) from None
    except RequestPayloadError as error:
        raise ReviewError(f"the body is malformed: {error}") from None
    return b"".join(chunks)


def _too_large(max_bytes: int) -> ReviewError:
    return ReviewError(
        f"the body is larger than {max_bytes} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    )
