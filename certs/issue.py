# SPDX-License-Identifier: Apache-2.0
"""Issues a certificate authority and the serving certificates below it.

Time is an argument; keys and serial numbers come from the library. Nothing here touches a file.
The extensions are those that strict verifiers (RFC 5280, Python's VERIFY_X509_STRICT) demand.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.errors import CertificateError
from certs.names import parse_name

AUTHORITY_VALIDITY: Final = timedelta(days=3650)
LEAF_VALIDITY: Final = timedelta(days=365)
BACKDATING: Final = timedelta(hours=1)
"""Certificates are valid from before now, for verifiers whose clocks are behind or set back."""

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
"""What is issued here is P-256; an authority that was brought along may be RSA."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and the private key that belongs to it."""

    certificate: x509.Certificate
    key: PrivateKey


def issue_authority(now: datetime, validity: timedelta = AUTHORITY_VALIDITY) -> KeyPair:
    """Issue a self-signed authority that may sign leaves only; `now` must know its time zone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Sluice certificate authority")
    builder = (
        _builder(name, key.public_key(), now)
        .issuer_name(name)
        .not_valid_after(now + validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    return KeyPair(builder.sign(key, SHA256()), key)


def issue_leaf(
    authority: KeyPair,
    names: tuple[str, ...],
    now: datetime,
    validity: timedelta = LEAF_VALIDITY,
) -> KeyPair:
    """Issue a serving certificate for DNS names and IP addresses, which ends before its authority.

    Raises CertificateError for a name that is neither, and when there is none.
    """
    if not names:
        raise CertificateError("a serving certificate needs at least one name")
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    subject_names = x509.SubjectAlternativeName([parse_name(name) for name in dict.fromkeys(names)])
    builder = (
        _builder(_name("Sluice webhook"), key.public_key(), now)
        .issuer_name(issuer.subject)
        .not_valid_after(min(now + validity, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(subject_names, critical=False)
        .add_extension(_authority_identifier(issuer), critical=False)
    )
    return KeyPair(builder.sign(authority.key, SHA256()), key)


def _builder(
    subject: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATING)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _authority_identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Copy the issuer's own identifier: one brought along need not be the hash of its key."""
    try:
        identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        # Any key type of a certificate can be hashed; the library's annotation names only some.
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier.value)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
