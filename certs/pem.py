# SPDX-License-Identifier: Apache-2.0
"""Certificates and keys to and from PEM; every fault is a CertificateError that says where.

Where the bytes are from is the caller's matter, who names it. Nothing here touches a file.
"""

from collections.abc import Iterable

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from certs.errors import CertificateError
from certs.issue import PrivateKey


def parse_certificates(data: bytes, where: object) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a PEM text in their order; there is at least one."""
    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"{where}: not a PEM certificate: {error}") from error


def parse_key(data: bytes, where: object) -> PrivateKey:
    """Return the private key of a PEM text: EC or RSA, not encrypted."""
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError as error:
        raise CertificateError(
            f"{where}: the private key is encrypted; store it decrypted"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        # The library's message may quote parts of what it could not parse, and this may be a key.
        raise CertificateError(f"{where}: not a PEM private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise CertificateError(f"{where}: the private key is neither EC nor RSA")
    return key


def certificates_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    """Return certificates as one PEM text, in their order."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def key_pem(key: PrivateKey) -> bytes:
    """Return a private key as PEM (PKCS #8, RFC 5958), not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
