# SPDX-License-Identifier: Apache-2.0
"""HTTP calls whose answers are bounded in time and size, with every failure as a SourceError.

Credentials are read again when their files change. What is asked and answered is not known here.
"""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import aiohttp

from reconciler.telemetry.access import HttpAccess, is_https
from reconciler.telemetry.credentials import TlsFiles, described, headers_of
from reconciler.telemetry.source import SourceError

_CHUNK_BYTES: Final = 64 * 1024
_SHOWN_BYTES: Final = 300
_OK: Final = 200
_REFUSED: Final = frozenset({401, 403})
_RENEW_SECONDS: Final = 10.0
"""How often the files of tokens and CAs are read again; service account tokens rotate."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """How long an answer may take (from connecting to its last byte) and how large it may be."""

    seconds: float = 10.0
    max_bytes: int = 64 * 2**20
    connections: int = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """The status and the whole body."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def is_success(self) -> bool:
        """Whether the status is 200."""
        return self.status == _OK

    @property
    def excerpt(self) -> str:
        """Return the beginning of the body on one line, for messages."""
        return " ".join(self.body[:_SHOWN_BYTES].decode(errors="replace").split())

    @property
    def retry_after_seconds(self) -> float | None:
        """Return what the server asks to wait, if it says so in seconds."""
        text = self.headers.get("Retry-After", "")
        return float(text) if text.isascii() and text.isdigit() else None


class Http:
    """A bounded HTTP client. Use as an async context manager."""

    def __init__(self, access: HttpAccess, limits: HttpLimits) -> None:
        self._access = access
        self._limits = limits
        self._tls = TlsFiles(access)
        self._session: aiohttp.ClientSession | None = None
        self._proofs: dict[bool, _Proof] = {}
        self._proving = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._limits.connections),
            # Compressed answers would have to be bounded twice.
            headers={"Accept-Encoding": "identity", "User-Agent": "sluice-telemetry"},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._limits.seconds),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, url: str, headers: Mapping[str, str]) -> Answer:
        """Fetch. Raises SourceError when no whole answer came."""
        return await self._send("GET", url, headers, None)

    async def post(self, url: str, form: Mapping[str, str]) -> Answer:
        """Send a form. Raises SourceError when no whole answer came."""
        return await self._send("POST", url, {}, form)

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> Answer:
        if self._session is None:
            raise SourceError("the HTTP client is not open")
        try:
            proof = await self._current_proof(url)
            async with self._session.request(
                method,
                url,
                data=form,
                headers={**headers, **proof.headers},
                ssl=proof.tls,
                server_hostname=self._access.server_name or None,
                # Redirects would carry the token elsewhere.
                allow_redirects=False,
            ) as response:
                body = await self._bounded(response)
                if response.status in _REFUSED:
                    # The files may have changed since they were read.
                    self._proofs.clear()
                return Answer(response.status, body, response.headers)
        except TimeoutError as error:
            raise SourceError(f"no answer within {self._limits.seconds:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SourceError(_described(error)) from error

    async def _bounded(self, response: aiohttp.ClientResponse) -> bytes:
        limit = self._limits.max_bytes
        length = response.content_length
        chunks: list[bytes] = []
        size = 0
        if length is None or length <= limit:
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                size += len(chunk)
                if size > limit:
                    break
                chunks.append(chunk)
            else:
                return b"".join(chunks)
        response.close()
        raise SourceError(f"the answer is larger than {limit} bytes")

    async def _current_proof(self, url: str) -> "_Proof":
        now = asyncio.get_running_loop().time()
        is_tls = is_https(url)
        # Many pages are asked for at once, which all need the same.
        async with self._proving:
            proof = self._proofs.get(is_tls)
            if proof is None or now - proof.read_at >= _RENEW_SECONDS:
                proof = self._proofs[is_tls] = await asyncio.to_thread(self._prove, is_tls, now)
            return proof

    def _prove(self, is_tls: bool, now: float) -> "_Proof":
        headers = headers_of(self._access)
        return _Proof(headers, self._tls.context() if is_tls else True, now)


@dataclass(frozen=True, slots=True)
class _Proof:
    headers: Mapping[str, str]
    tls: ssl.SSLContext | bool
    read_at: float


def checked_url(text: str, what: str) -> str:
    """Return the URL without slashes at its end. ValueError for one that is not to be called."""
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{what} is {text!r}, which is not an http or https address")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"{what} must be a plain address; credentials belong into a token file")
    return text.rstrip("/")


def _described(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        refused = error.certificate_error
        reason = getattr(refused, "verify_message", "") or str(refused)
        return f"the certificate of {error.host}:{error.port} is not trusted: {reason}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", "") or str(error.os_error)
        return f"no TLS with {error.host}:{error.port}: {reason}"
    if isinstance(error, (OSError, ValueError)) and not isinstance(error, aiohttp.ClientError):
        return described(error)
    text = str(error)
    return text if text and not isinstance(error, KeyError) else type(error).__name__
