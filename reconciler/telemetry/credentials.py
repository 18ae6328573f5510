# SPDX-License-Identifier: Apache-2.0
"""The files of credentials and CAs, as headers and TLS contexts that follow them as they change.

Which files there are is told; when they are read again is the caller's matter.
"""

import hashlib
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

from reconciler.telemetry.access import HttpAccess, variable

_Check = Callable[[HttpAccess], object]


def headers_of(access: HttpAccess) -> dict[str, str]:
    """Return the headers that prove who we are. Raises OSError, ValueError, naming the file."""
    headers = {"X-Scope-OrgID": access.tenant} if access.tenant else {}
    if access.username:
        # Source: RFC 7617.
        proof = f"{access.username}:{_line(access.password_file)}".encode()
        return {**headers, "Authorization": f"Basic {b64encode(proof).decode()}"}
    token = _token(access.token_file) if access.token_file else access.token
    return {**headers, "Authorization": f"Bearer {token}"} if token else headers


class TlsFiles:
    """A TLS context, made anew only when a file has changed: connections are kept by it."""

    def __init__(self, access: HttpAccess) -> None:
        self._access = access
        self._digest = b""
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return it. Raises OSError, ValueError, naming the file that is of no use."""
        access = self._access
        files = tuple(filter(None, (access.ca_file, access.cert_file, access.key_file)))
        digest = hashlib.sha256(b"\0".join(_content(each) for each in files)).digest()
        if self._context is None or digest != self._digest:
            self._context = _with_certificate(_trusting(access), access)
            self._digest = digest
        return self._context


def unusable(prefix: str, access: HttpAccess) -> Iterator[str]:
    """Yield for each file that cannot be used its variable, its path and why."""
    checks: tuple[tuple[str, _Check], ...] = (
        ("token_file", lambda given: _token(given.token_file)),
        ("password_file", lambda given: _line(given.password_file)),
        ("ca_file", _trusting),
        ("cert_file", lambda given: _with_certificate(ssl.create_default_context(), given)),
    )
    for name, check in checks:
        if not getattr(access, name):
            continue
        try:
            check(access)
        except (OSError, ValueError) as error:
            yield f"{variable(prefix, name)}: {described(error)}"


def described(error: OSError | ValueError) -> str:
    """Return why a file could not be used, on one line."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _trusting(access: HttpAccess) -> ssl.SSLContext:
    if not access.ca_file:
        return ssl.create_default_context()
    _content(access.ca_file)
    try:
        return ssl.create_default_context(cafile=access.ca_file)
    except ssl.SSLError as error:
        raise ValueError(f"{access.ca_file} holds no certificate in PEM") from error


def _with_certificate(context: ssl.SSLContext, access: HttpAccess) -> ssl.SSLContext:
    if access.cert_file:
        for each in (access.cert_file, access.key_file):
            _content(each)
        try:
            # A key that is encrypted would be asked about at the terminal.
            context.load_cert_chain(access.cert_file, access.key_file, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            pair = f"{access.cert_file} and {access.key_file}"
            raise ValueError(f"{pair} are no certificate with its unencrypted key") from error
    return context


def _no_password() -> str:
    raise ValueError("there is no password")


def _token(path: str) -> str:
    """Return a token. Its file may end in a newline, which no header can hold."""
    token = _line(path)
    if not (token.isascii() and token.isprintable()):
        raise ValueError(f"{path} holds no bearer token: it must be one line of ASCII")
    return token


def _line(path: str) -> str:
    try:
        text = _content(path).decode().strip()
    except UnicodeDecodeError:
        # The error itself would show a part of the secret.
        raise ValueError(f"{path} holds no text") from None
    if not text:
        raise ValueError(f"{path} is empty")
    return text


def _content(path: str) -> bytes:
    return Path(path).read_bytes()
