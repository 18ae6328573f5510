# SPDX-License-Identifier: Apache-2.0
"""The server's TLS, with a certificate that can be replaced while connections stay open.

A new pair goes into a context of its own, which handshakes are switched to once it is whole:
loading it into the live one would leave that half changed when the pair is broken, and would keep
the old certificate beside a new one of another key type. Issuing certificates is for `certs`.
"""

import asyncio
import hashlib
import logging
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from cryptography import x509

from webhook.tls_sources import Pem, PemSource, TlsError

logger = logging.getLogger(__name__)


class TlsMetrics(Protocol):
    """Where changes of certificates are counted."""

    def tls_reloaded(self, *, succeeded: bool) -> None:
        """Count an attempt to take up new files."""

    def certificate_expires(self, timestamp: float) -> None:
        """State when (Unix seconds) the certificate that is served ends."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    context: ssl.SSLContext
    expires: datetime


class ServerTls:
    """Gives the context to listen with, once `loaded` is set, and replaces what it serves.

    The constructor raises TlsError for what is there and cannot be served. An expired certificate
    is refused, unless there is no other.
    """

    def __init__(
        self,
        source: PemSource,
        metrics: TlsMetrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.loaded = asyncio.Event()
        self.context = _server_context()
        self.context.sni_callback = self._switch
        self._source = source
        self._metrics = metrics
        self._now = now
        self._seen = b""
        self._served: _Loaded | None = None
        pem = source.read()
        if pem is not None:
            self._seen = _fingerprint(pem)
            self._serve(_load(pem, source))

    def reload(self) -> bool:
        """Serve what is there now; tell whether it has changed and can be served.

        What cannot be served is logged and counted once; the old pair stays.
        """
        try:
            pem = self._source.read()
        except TlsError as error:
            return self._keep_old(b"", error)
        fingerprint = b"" if pem is None else _fingerprint(pem)
        if pem is None or fingerprint == self._seen:
            return False
        try:
            loaded = self._load_unexpired(pem)
        except TlsError as error:
            return self._keep_old(fingerprint, error)
        self._seen = fingerprint
        self._serve(loaded)
        self._metrics.tls_reloaded(succeeded=True)
        return True

    async def watch(self) -> None:
        """Reload whenever the source changes, for ever."""
        if not self.loaded.is_set():
            logger.info("waiting for a certificate: %s", self._source)
        while True:
            await self._source.changed()
            self.reload()

    def _load_unexpired(self, pem: Pem) -> _Loaded:
        loaded = _load(pem, self._source)
        if loaded.expires <= self._now() and self._served is not None:
            ended = f"{loaded.expires:%Y-%m-%d %H:%M}"
            raise TlsError(f"the certificate of {self._source} has expired, at {ended} UTC")
        return loaded

    def _serve(self, loaded: _Loaded) -> None:
        self._served = loaded
        self.loaded.set()
        self._metrics.certificate_expires(loaded.expires.timestamp())
        ended = loaded.expires <= self._now()
        logger.log(
            logging.ERROR if ended else logging.INFO,
            "serving the certificate of %s, which %s at %s UTC",
            self._source,
            "expired" if ended else "ends",
            f"{loaded.expires:%Y-%m-%d %H:%M}",
        )

    def _switch(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext
    ) -> int | None:
        """Give a handshake the current certificate; OpenSSL asks with and without a server name."""
        if self._served is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._served.context
        return None

    def _keep_old(self, fingerprint: bytes, error: TlsError) -> bool:
        if fingerprint != self._seen:
            self._seen = fingerprint
            self._metrics.tls_reloaded(succeeded=False)
            stays = "the old one stays in use" if self._served else "there is no other"
            logger.error("new certificate not taken, %s: %s", stays, error)
        return False


def _fingerprint(pem: Pem) -> bytes:
    digest = hashlib.sha256()
    for content in (pem.certificate, pem.key):
        digest.update(len(content).to_bytes(8) + content)
    return digest.digest()


def _load(pem: Pem, source: PemSource) -> _Loaded:
    """Read a pair into a new context, which OpenSSL checks to belong together."""
    context = _server_context()
    try:
        with _as_file(pem.certificate) as certificate, _as_file(pem.key) as key:
            # A password, so that an encrypted key is an error and not a question on the terminal.
            context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise TlsError(f"{source}: {reason}") from error
    except OSError as error:
        raise TlsError(f"{source}: {error.strerror}") from error
    return _Loaded(context, _expiry(pem.certificate, source))


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give a path to bytes in memory.

    Python loads pairs from paths only, and the key of a Secret has no business on a disk.
    """
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _expiry(chain: bytes, source: PemSource) -> datetime:
    """Return when the first certificate of the chain to end does so."""
    try:
        certificates = x509.load_pem_x509_certificates(chain)
    except ValueError as error:
        raise TlsError(f"{source}: {error}") from error
    return min(certificate.not_valid_after_utc for certificate in certificates)
