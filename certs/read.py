# SPDX-License-Identifier: Apache-2.0
"""Reads certificates and keys from PEM files; every fault is a CertificateError with the file.

What a file is worth is for verify.py to say. Nothing here writes.
"""

import stat
from pathlib import Path
from typing import Final

from cryptography import x509

from certs.errors import CertificateError
from certs.issue import PrivateKey
from certs.pem import parse_certificates, parse_key

MAX_BYTES: Final = 1 << 20
"""More than any bundle of authorities; keeps a wrong path from being read for ever."""


def read_certificates(path: Path) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a PEM file in their order; there is at least one."""
    return parse_certificates(_read(path), path)


def read_key(path: Path) -> PrivateKey:
    """Return the private key of a PEM file: EC or RSA, not encrypted."""
    return parse_key(_read(path), path)


def exists(path: Path) -> bool:
    """Tell whether something of that name is there, a dangling link included."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror}") from error
    return True


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CertificateError(f"{path}: not a file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise CertificateError(f"{path}: larger than {MAX_BYTES} bytes")
    if not data.strip():
        raise CertificateError(f"{path}: empty")
    return data
