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
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

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

    def renew(
        self, now: datetime | None = None, names: tuple[str, ...] = LOOPBACK
    ) -> x509.Certificate:
        """Replace certificate and key by a new pair, valid for a year from `now`."""
        leaf = issue_leaf(self.authority, names, now or datetime.now(UTC))
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

    def client_pair(self) -> tuple[Path, Path]:
        """Write a certificate by which a client proves itself, and its key; return where."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client")]))
            .issuer_name(self.authority.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(self.authority.key, SHA256())
        )
        paths = self.directory / "client.crt", self.directory / "client.key"
        paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return paths

    def client_context(self) -> ssl.SSLContext:
        """Return a context that trusts the authority and nobody else."""
        return ssl.create_default_context(cafile=str(self.ca))

    def server_context(self) -> ssl.SSLContext:
        """Return a context that serves the leaf as it is now."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def _write(
        self,
        certificate: x509.Certificate,
        key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey,
    ) -> x509.Certificate:
        self.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        return certificate


def make_pki(directory: Path) -> Pki:
    """Make an authority and a first leaf for loopback, in a folder that may have to be made."""
    directory.mkdir(parents=True, exist_ok=True)
    pki = Pki(issue_authority(datetime.now(UTC)), directory)
    pki.ca.write_bytes(pki.authority.certificate.public_bytes(Encoding.PEM))
    pki.renew()
    return pki
