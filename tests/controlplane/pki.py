# SPDX-License-Identifier: Apache-2.0
"""The control plane's own certificates and keys: a CA, a serving leaf, users' client leaves.

All keys are ECDSA P-256, made at once where RSA takes a noticeable time. No files are touched here.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=365)
_CLOCK_SKEW = timedelta(hours=1)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1", "10.0.0.1")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Authority:
    """A self-signed CA that lives as long as one control plane."""

    name: x509.Name
    private_key: ec.EllipticCurvePrivateKey
    certificate: bytes

    @classmethod
    def create(cls, now: datetime) -> Self:
        """Make a new CA, valid from an hour before `now` for a year."""
        private_key = ec.generate_private_key(ec.SECP256R1())
        name = _subject("control-plane-ca")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            _builder(name, name, private_key.public_key(), now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(private_key, hashes.SHA256())
        )
        return cls(name, private_key, certificate.public_bytes(serialization.Encoding.PEM))

    def serving(self, now: datetime) -> KeyPair:
        """Issue the leaf that every component serves with, for the loopback names and addresses."""
        names = [x509.DNSName(name) for name in _NAMES]
        addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in _ADDRESSES]
        alternative = x509.SubjectAlternativeName([*names, *addresses])
        return self._issue(
            _subject("control-plane"), ExtendedKeyUsageOID.SERVER_AUTH, now, alternative
        )

    def client(self, user: str, groups: tuple[str, ...], now: datetime) -> KeyPair:
        """Issue a certificate that makes its holder `user` (CN), a member of `groups` (O)."""
        return self._issue(_subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, now)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        now: datetime,
        alternative: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        private_key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self.name, private_key.public_key(), now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if alternative is not None:
            builder = builder.add_extension(alternative, critical=False)
        certificate = builder.sign(self.private_key, hashes.SHA256())
        return KeyPair(
            certificate.public_bytes(serialization.Encoding.PEM), _private_pem(private_key)
        )


def signing_keys() -> tuple[bytes, bytes]:
    """Return the private and the public key (PEM) of service account tokens."""
    private_key = ec.generate_private_key(ec.SECP256R1())
    public_pem = private_key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return _private_pem(private_key), public_pem


def _subject(common_name: str, organizations: tuple[str, ...] = ()) -> x509.Name:
    members = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*members, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
