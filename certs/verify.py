# SPDX-License-Identifier: Apache-2.0
"""Tells what is wrong with a serving certificate, in sentences; time is an argument.

Chain, usage and names are judged by the library's path validation (RFC 5280), so that wildcards
and intermediates count as they do for a TLS client. Nothing here touches a file.
"""

from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from certs.names import parse_name

RENEW_BEFORE: Final = timedelta(days=90)
"""A leaf is renewed when less than this is left of it."""


def key_matches(certificate: x509.Certificate, key: PrivateKeyTypes) -> bool:
    """Tell whether the certificate was issued for this private key."""
    return certificate.public_key() == key.public_key()


def find_faults(
    chain: tuple[x509.Certificate, ...],
    authorities: tuple[x509.Certificate, ...],
    names: tuple[str, ...],
    now: datetime,
) -> tuple[str, ...]:
    """Return why a TLS client would refuse this chain (leaf first) under these names; () if good.

    Raises CertificateError for a name that is neither a DNS name nor an IP address.
    """
    leaf, *intermediates = chain
    if now > leaf.not_valid_after_utc:
        return (f"expired at {leaf.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",)
    if now < leaf.not_valid_before_utc:
        return (f"not valid before {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC",)
    if not any(is_issued_by(candidate, leaf) for candidate in (*authorities, *intermediates)):
        return ("not issued by any certificate of the authority file",)
    builder = _policy().store(Store(list(authorities))).time(now)
    faults = []
    for name in names:
        verifier = builder.build_server_verifier(parse_name(name))
        try:
            verifier.verify(leaf, intermediates)
        except VerificationError as error:
            faults.append(f"not usable for {name}: {_first_words(error)}")
    return tuple(faults)


def _policy() -> PolicyBuilder:
    """Return the library's policy, less what Go's TLS (the API server's) does not ask of a CA.

    `openssl req -x509` leaves the key usage out.
    """
    authority = (
        ExtensionPolicy.webpki_defaults_ca()
        .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, None)
        .may_be_present(x509.SubjectKeyIdentifier, Criticality.AGNOSTIC, None)
    )
    return PolicyBuilder().extension_policies(
        ca_policy=authority, ee_policy=ExtensionPolicy.webpki_defaults_ee()
    )


def is_valid_at(certificate: x509.Certificate, now: datetime) -> bool:
    """Tell whether the time lies within the certificate's validity."""
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def is_due(
    leaf: x509.Certificate,
    authority: x509.Certificate,
    now: datetime,
    renew_before: timedelta = RENEW_BEFORE,
) -> bool:
    """Tell whether the leaf nears its end and a new one would last longer."""
    ends = leaf.not_valid_after_utc
    return ends - now < renew_before and ends < authority.not_valid_after_utc


def _first_words(error: VerificationError) -> str:
    """Return what failed, without the representation of the certificate that it happened at."""
    return str(error).removeprefix("validation failed: ").partition(" (encountered ")[0]


def is_issued_by(issuer: x509.Certificate, leaf: x509.Certificate) -> bool:
    """Tell whether the issuer's key has signed the leaf, whatever their times and uses."""
    try:
        leaf.verify_directly_issued_by(issuer)
    except (InvalidSignature, UnsupportedAlgorithm, TypeError, ValueError):
        return False
    return True
