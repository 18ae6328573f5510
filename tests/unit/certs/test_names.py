# SPDX-License-Identifier: Apache-2.0
"""Which names a certificate gets, and which are refused."""

from ipaddress import IPv4Address, IPv6Address

import pytest

from certs.errors import CertificateError
from certs.names import parse_name, service_names


def test_a_service_is_named_as_the_api_server_and_people_call_it() -> None:
    assert service_names("gate", "gpu", ("10.1.2.3", "gate.example.com", "localhost")) == (
        "gate.gpu.svc",
        "gate.gpu.svc.cluster.local",
        "gate.gpu",
        "gate",
        "localhost",
        "127.0.0.1",
        "::1",
        "10.1.2.3",
        "gate.example.com",
    )


def test_addresses_and_dns_names_are_told_apart() -> None:
    assert parse_name("127.0.0.1").value == IPv4Address("127.0.0.1")
    assert parse_name("::1").value == IPv6Address("::1")
    assert parse_name("Sluice.Example.COM").value == "sluice.example.com"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "two words",
        "under_score",
        "-dash",
        "dash-",
        "a..b",
        ".a",
        "a.",
        "*.example.com",
        "300.1.1.1",
        "1.2.3",
        "münchen.example",
        "http://example.com",
        "a" * 64,
        "a." * 127 + "ab",
        "x\n",
        "\u0661.example",
    ],
)
def test_what_is_neither_a_name_nor_an_address_is_refused(text: str) -> None:
    with pytest.raises(CertificateError, match="neither a DNS name nor an IP address"):
        parse_name(text)
