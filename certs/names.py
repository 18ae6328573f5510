# SPDX-License-Identifier: Apache-2.0
"""The names that a webhook is called by, and their form in a certificate.

The API server calls a service as `<service>.<namespace>.svc`; the rest is for people and tests.
Nothing here reads a file or issues a certificate.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from cryptography.x509 import DNSName, IPAddress

from certs.errors import CertificateError

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

_MAX_LENGTH: Final = 253
_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DNS_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_ALL_DIGITS: Final = re.compile(r"[0-9.]+", re.ASCII)


def service_names(service: str, namespace: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return every name of a Service, the loopback names, and the extra ones, each once."""
    own = (
        f"{service}.{namespace}.svc",
        f"{service}.{namespace}.svc.cluster.local",
        f"{service}.{namespace}",
        service,
    )
    return tuple(dict.fromkeys((*own, *LOOPBACK, *extra)))


def parse_name(text: str) -> DNSName | IPAddress:
    """Return the subject alternative name for a DNS name (RFC 1123) or an IP address.

    Raises CertificateError for anything else: wildcards too, and names not in their xn-- form.
    """
    address = _parse_address(text)
    if address is not None:
        return IPAddress(address)
    if len(text) > _MAX_LENGTH or not _DNS_NAME.fullmatch(text) or _ALL_DIGITS.fullmatch(text):
        raise CertificateError(f"{text[:_MAX_LENGTH]!r} is neither a DNS name nor an IP address")
    return DNSName(text.lower())


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
