# SPDX-License-Identifier: Apache-2.0
"""The server's TLS, with certificates that can be replaced while connections stay open.

New files go into a context of their own, which handshakes are switched to once it is whole:
loading them into the live one would leave it half changed when they are broken, and would keep
the old certificate beside a new one of another key type. Issuing certificates is for `certs`.
"""

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from cryptography import x509

logger = logging.getLogger(__name__)


class TlsError(Exception):
    """Certificate files that cannot be served; the message names them and says why."""


class TlsMetrics(Protocol):
    """Where changes of certificates are counted."""

    def tls_reloaded(self, *, succeeded: bool) -> None:
        """Count an attempt to take up new files."""

    def certificate_expires(self, timestamp: float) -> None:
        """State when (Unix seconds) the certificate that is served ends."""


@dataclass(frozen=True, slots=True)
class PemFiles:
    """PEM files: the certificate with its intermediates, and its private key, not encrypted."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class _Loaded:
    context: ssl.SSLContext
    expires: datetime


class ServerTls:
    """Gives the context to listen with, and replaces what it serves.

    The constructor raises TlsError. An expired certificate is refused, unless there is no other.
    """

    def __init__(
        self,
        files: PemFiles,
        metrics: TlsMetrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._files = files
        self._metrics = metrics
        self._now = now
        self._seen = self._fingerprint()
        self._served = _load(files)
        self._announce()
        self.context = _server_context()
        self.context.sni_callback = self._switch

    def reload(self) -> bool:
        """Serve the files as they are now; tell whether they changed and could be served.

        Files that cannot be served are logged and counted once; the old ones stay.
        """
        try:
            fingerprint = self._fingerprint()
        except TlsError as error:
            return self._keep_old(b"", error)
        if fingerprint == self._seen:
            return False
        try:
            loaded = self._load_unexpired()
        except TlsError as error:
            return self._keep_old(fingerprint, error)
        self._seen, self._served = fingerprint, loaded
        self._metrics.tls_reloaded(succeeded=True)
        self._announce()
        return True

    async def watch(self, interval_seconds: float = 5.0) -> None:
        """Reload whenever the files change, for ever.

        By looking, since that also works for the symlinks of mounted Secrets and on any file
        system; two small files every few seconds are nothing.
        """
        while True:
            await asyncio.sleep(interval_seconds)
            self.reload()

    def _load_unexpired(self) -> _Loaded:
        loaded = _load(self._files)
        if loaded.expires <= self._now():
            ended = f"{loaded.expires:%Y-%m-%d %H:%M}"
            raise TlsError(f"{self._files.certificate} has expired, at {ended} UTC")
        return loaded

    def _switch(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext
    ) -> None:
        """Give a handshake the current certificate; OpenSSL asks with and without a server name."""
        connection.context = self._served.context

    def _keep_old(self, fingerprint: bytes, error: TlsError) -> bool:
        if fingerprint != self._seen:
            self._seen = fingerprint
            self._metrics.tls_reloaded(succeeded=False)
            logger.error("new certificate not taken, the old one stays in use: %s", error)
        return False

    def _announce(self) -> None:
        expires = self._served.expires
        self._metrics.certificate_expires(expires.timestamp())
        ended = expires <= self._now()
        logger.log(
            logging.ERROR if ended else logging.INFO,
            "serving certificate %s, which %s at %s UTC",
            self._files.certificate,
            "expired" if ended else "ends",
            f"{expires:%Y-%m-%d %H:%M}",
        )

    def _fingerprint(self) -> bytes:
        digest = hashlib.sha256()
        for path in (self._files.certificate, self._files.key):
            content = _read(path)
            digest.update(len(content).to_bytes(8) + content)
        return digest.digest()


def _load(files: PemFiles) -> _Loaded:
    """Read both files into a new context, which OpenSSL checks to belong together."""
    context = _server_context()
    try:
        # A password, so that an encrypted key is an error and not a question on the terminal.
        context.load_cert_chain(files.certificate, files.key, password="")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise TlsError(f"{files.certificate} and {files.key}: {reason}") from error
    except OSError as error:
        raise TlsError(f"{files.certificate} and {files.key}: {error.strerror}") from error
    return _Loaded(context, _expiry(files.certificate))


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _expiry(path: Path) -> datetime:
    """Return when the first certificate of the chain to end does so."""
    try:
        chain = x509.load_pem_x509_certificates(_read(path))
    except ValueError as error:
        raise TlsError(f"{path}: {error}") from error
    return min(certificate.not_valid_after_utc for certificate in chain)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path}: {error.strerror}") from error
