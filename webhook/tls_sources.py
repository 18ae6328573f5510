# SPDX-License-Identifier: Apache-2.0
"""Where the server's certificate comes from: files, or a Secret that the leader keeps.

Whether what is read can be served is for `webhook.tls` to find out.
"""

import asyncio
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reconciler.kube.tls_secret import TlsData


class TlsError(Exception):
    """Certificates that cannot be served; the message names them and says why."""


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM texts: the certificate with its intermediates, and its private key, not encrypted."""

    certificate: bytes
    key: bytes


class PemSource(Protocol):
    """Where a certificate is from; `str()` of it is its name in messages."""

    def read(self) -> Pem | None:
        """Return what is there now; None for nothing yet. Raises TlsError."""
        ...

    async def changed(self) -> None:
        """Return when it may be worth reading again."""
        ...


@dataclass(frozen=True, slots=True)
class PemFiles:
    """Two PEM files.

    They are looked at every few seconds, since that also works for the symlinks of mounted Secrets
    and on any file system; two small files are nothing.
    """

    certificate: Path
    key: Path
    interval_seconds: float = 5.0

    def __str__(self) -> str:
        return f"{self.certificate} and {self.key}"

    def read(self) -> Pem:
        """Return their content. Raises TlsError."""
        return Pem(_read(self.certificate), _read(self.key))

    async def changed(self) -> None:
        """Return after the interval."""
        await asyncio.sleep(self.interval_seconds)


class WatchedSecret(Protocol):
    """A Secret that somebody keeps current."""

    @property
    def namespace(self) -> str:
        """Where it is."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def current(self) -> TlsData | None:
        """Return what it holds; None while it is not there."""
        ...

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Have `subscriber` called after every change."""
        ...


class PemSecret:
    """A Secret; until there is one, there is nothing to serve."""

    def __init__(self, secret: WatchedSecret) -> None:
        self._secret = secret
        self._changed = asyncio.Event()
        self._was_there = False
        secret.subscribe(self._changed.set)

    def __str__(self) -> str:
        return f"Secret {self._secret.namespace}/{self._secret.name}"

    def read(self) -> Pem | None:
        """Return its content; None before the first. Raises TlsError once it is gone."""
        found = self._secret.current()
        if found is None:
            if self._was_there:
                raise TlsError(f"{self} is gone")
            return None
        self._was_there = True
        return Pem(found.certificate, found.key)

    async def changed(self) -> None:
        """Return after a change."""
        await self._changed.wait()
        self._changed.clear()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        hint = f"`sluice certs --dir {shlex.quote(str(path.parent))}` makes certificates"
        raise TlsError(f"{path}: {error.strerror}; {hint}") from error
    except OSError as error:
        raise TlsError(f"{path}: {error.strerror}") from error
