# SPDX-License-Identifier: Apache-2.0
"""Serving certificates for tests, of either key type and any validity, in a directory."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from certs.issue import KeyPair, issue_authority, issue_leaf
from certs.names import LOOPBACK


@dataclass(frozen=True, slots=True)
class Pki:
    """An authority and where its leaf is kept."""

    authority: KeyPair
    directory: Path

    @property
    def certificate(self) -> Path:
        """The chain that is served."""
        return self.directory / "tls.crt"

    @property
    def key(self) -> Path:
        """Its key."""
        return self.directory / "tls.key"

    @property
    def ca(self) -> Path:
        """What clients trust."""
        return self.directory / "ca.crt"

    def renew(self, now: datetime | None = None) -> x509.Certificate:
        """Replace certificate and key by a new pair, valid for a year from `now`."""
        leaf = issue_leaf(self.authority, LOOPBACK, now or datetime.now(UTC))
        return self._write(leaf.certificate, leaf.key)

    def renew_rsa(self) -> x509.Certificate:
        """Replace them by a pair of the other key type."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        template = issue_leaf(self.authority, LOOPBACK, datetime.now(UTC)).certificate
        names = template.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "RSA")]))
            .issuer_name(self.authority.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - timedelta(minutes=5))
            .not_valid_after(datetime.now(UTC) + timedelta(days=1))
            .add_extension(names.value, critical=False)
            .sign(self.authority.key, SHA256())
        )
        return self._write(certificate, key)

    def client_context(self) -> ssl.SSLContext:
        """Return a context that trusts the authority and nobody else."""
        return ssl.create_default_context(cafile=str(self.ca))

    def _write(
        self,
        certificate: x509.Certificate,
        key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey,
    ) -> x509.Certificate:
        self.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        return certificate


def make_pki(directory: Path) -> Pki:
    """Make an authority and a first leaf for loopback."""
    pki = Pki(issue_authority(datetime.now(UTC)), directory)
    pki.ca.write_bytes(pki.authority.certificate.public_bytes(Encoding.PEM))
    pki.renew()
    return pki
