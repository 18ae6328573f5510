# SPDX-License-Identifier: Apache-2.0
"""Keeps a directory's certificates in order: ca.crt, ca.key, tls.crt, tls.key.

The authority is kept as long as it is valid, since API servers hold its certificate; the leaf is
renewed as needed. A reader never sees half a file, and a key always appears before its
certificate, so a certificate that does not fit its key is one to read again in a moment.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from cryptography import x509

from certs.errors import CertificateError
from certs.issue import KeyPair, issue_authority, issue_leaf
from certs.names import parse_name
from certs.pem import certificates_pem, key_pem
from certs.read import exists, read_certificates, read_key
from certs.verify import find_faults, is_due, key_matches

_DIRECTORY_MODE: Final = 0o700
_KEY_MODE: Final = 0o600
_CERTIFICATE_MODE: Final = 0o644


@dataclass(frozen=True, slots=True)
class Authority:
    """What ca.crt holds, and the one of it that ca.key belongs to; None without ca.key."""

    trusted: tuple[x509.Certificate, ...]
    signer: KeyPair | None


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where the four files are; `written` are those that ensure() made or renewed."""

    ca_certificate: Path
    ca_key: Path
    certificate: Path
    key: Path
    written: tuple[Path, ...] = ()

    @classmethod
    def in_directory(cls, directory: Path, written: tuple[Path, ...] = ()) -> Self:
        """Name the files as Kubernetes names the keys of a TLS Secret."""
        return cls(
            ca_certificate=directory / "ca.crt",
            ca_key=directory / "ca.key",
            certificate=directory / "tls.crt",
            key=directory / "tls.key",
            written=written,
        )


def ensure(
    directory: Path, names: tuple[str, ...], now: datetime, *, replace_authority: bool = False
) -> CertificateFiles:
    """Make the directory hold a valid authority and a leaf that is good for all names.

    An authority that is unreadable or does not fit its key is not replaced unless asked.
    Raises CertificateError for such a one, for a bad name and for a file that cannot be written.
    """
    if not names:
        raise CertificateError("a serving certificate needs at least one name")
    for name in names:
        parse_name(name)
    files = CertificateFiles.in_directory(directory)
    with _locked(directory):
        written: list[Path] = []
        authority = None if replace_authority else _kept_authority(files, now)
        if authority is None:
            pair = issue_authority(now)
            _write_pair(pair, files.ca_key, files.ca_certificate)
            written += [files.ca_key, files.ca_certificate]
            authority = Authority((pair.certificate,), pair)
        reason = _why_renew(files, authority, names, now)
        if reason is not None:
            _write_pair(_issue(files, authority, names, now, reason), files.key, files.certificate)
            written += [files.key, files.certificate]
    return CertificateFiles.in_directory(directory, tuple(written))


def read_ca_bundle(path: Path) -> bytes:
    """Return the certificates of an authority file as PEM, without whatever else it holds."""
    return certificates_pem(read_certificates(path))


def _kept_authority(files: CertificateFiles, now: datetime) -> Authority | None:
    """Return what to go on with; None where there is nothing, or the signing one has ended."""
    if not exists(files.ca_certificate):
        if exists(files.ca_key):
            raise CertificateError(
                f"{files.ca_key}: its certificate {files.ca_certificate.name} is missing;"
                " restore it, or ask for a new authority"
            )
        return None
    trusted = read_certificates(files.ca_certificate)
    if not exists(files.ca_key):
        return Authority(trusted, None)
    signer = _find_signer(files, trusted)
    return None if signer.certificate.not_valid_after_utc < now else Authority(trusted, signer)


def _find_signer(files: CertificateFiles, trusted: tuple[x509.Certificate, ...]) -> KeyPair:
    """Return the key and the certificate of it; ca.crt may also hold an older authority's."""
    key = read_key(files.ca_key)
    for certificate in trusted:
        if key_matches(certificate, key):
            _check_may_sign(files.ca_certificate, certificate)
            return KeyPair(certificate, key)
    raise CertificateError(
        f"{files.ca_certificate}: holds no certificate of the key {files.ca_key.name};"
        " restore it, or ask for a new authority"
    )


def _check_may_sign(path: Path, certificate: x509.Certificate) -> None:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        is_authority = False
    except ValueError as error:
        raise CertificateError(f"{path}: malformed extensions: {error}") from error
    else:
        is_authority = constraints.value.ca
    if not is_authority:
        raise CertificateError(f"{path}: not the certificate of an authority")


def _why_renew(
    files: CertificateFiles, authority: Authority, names: tuple[str, ...], now: datetime
) -> str | None:
    """Return what is wrong with the leaf, or None if it can stay."""
    try:
        chain = read_certificates(files.certificate)
        key = read_key(files.key)
    except CertificateError as error:
        return str(error)
    if not key_matches(chain[0], key):
        return f"{files.key}: not the key of {files.certificate.name}"
    for fault in find_faults(chain, authority.trusted, names, now):
        return f"{files.certificate}: {fault}"
    if authority.signer and is_due(chain[0], authority.signer.certificate, now):
        return f"{files.certificate}: ends soon"
    return None


def _issue(
    files: CertificateFiles,
    authority: Authority,
    names: tuple[str, ...],
    now: datetime,
    reason: str,
) -> KeyPair:
    """Issue a leaf and prove it before it replaces the old one, whatever authority was given."""
    if authority.signer is None:
        raise CertificateError(f"{reason}; without {files.ca_key.name} no other can be issued")
    leaf = issue_leaf(authority.signer, names, now)
    for fault in find_faults((leaf.certificate,), authority.trusted, names, now):
        raise CertificateError(f"{files.ca_certificate}: a certificate issued from it is {fault}")
    return leaf


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Make the directory and hold it alone, so that two processes do not mix their pairs."""
    try:
        directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise CertificateError(f"{directory}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_pair(pair: KeyPair, key: Path, certificate: Path) -> None:
    _write(key, key_pem(pair.key), _KEY_MODE)
    _write(certificate, certificates_pem((pair.certificate,)), _CERTIFICATE_MODE)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write beside the file and rename, so that a reader sees the old one or the new one."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CertificateError(f"{path}: cannot be written: {error.strerror}") from error
