# SPDX-License-Identifier: Apache-2.0
"""How a server of telemetry is reached safely: credentials and whom to trust, as variables say it.

The names are those of Prometheus' own `tls_config` and `basic_auth`. Files are not opened here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from policies.documents.kubernetes_names import is_dns_subdomain

PROMETHEUS: Final = "PROMETHEUS"
EXPORTER: Final = "SLUICE_EXPORTER"
"""What the names of the variables begin with."""

_FIELDS: Final = (
    *("token_file", "username", "password_file"),
    *("ca_file", "cert_file", "key_file", "server_name", "tenant"),
)
_OF_TLS: Final = ("ca_file", "cert_file", "key_file", "server_name")
_TOGETHER: Final = (("username", "password_file"), ("cert_file", "key_file"))


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """How to prove who we are, and whom to trust. Files may change while the process runs.

    `server_name` is what the server's certificate is for, where that is not its address; `tenant`
    is sent as X-Scope-OrgID (Mimir, Cortex, Loki's gateway). Raises ValueError for credentials of
    two kinds, and for half of a pair.
    """

    token: str = field(default="", repr=False)
    token_file: str = ""
    ca_file: str = ""
    tenant: str = ""
    server_name: str = ""
    username: str = ""
    password_file: str = ""
    cert_file: str = ""
    key_file: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.token, self.token_file, self.username))) > 1:
            raise ValueError("a bearer token, a file of one, and a user's name exclude each other")
        for first, second in _TOGETHER:
            if bool(getattr(self, first)) != bool(getattr(self, second)):
                raise ValueError(f"{first} and {second} need each other")


def variable(prefix: str, name: str) -> str:
    """Return the variable of a field of HttpAccess: `PROMETHEUS_CA_FILE` for `ca_file`."""
    return f"{prefix}_{name.upper()}"


def access_of(prefix: str, environ: Mapping[str, str], *, is_tls: bool) -> HttpAccess:
    """Return what the variables of one server say. Raises ValueError, naming the variable.

    `is_tls` tells whether the server is called by https.
    """
    given = {each: environ.get(variable(prefix, each), "").strip() for each in _FIELDS}
    problem = next(_problems(prefix, given, is_tls=is_tls), None)
    if problem is not None:
        raise ValueError(problem)
    return HttpAccess(**given)


def _problems(prefix: str, given: Mapping[str, str], *, is_tls: bool) -> Iterator[str]:
    names = {each: variable(prefix, each) for each in _FIELDS}
    for first, second in (*_TOGETHER, *(pair[::-1] for pair in _TOGETHER)):
        if given[first] and not given[second]:
            yield f"{names[first]} needs {names[second]}"
    if given["token_file"] and given["username"]:
        yield f"{names['token_file']} and {names['username']} exclude each other"
    for each in _OF_TLS:
        if given[each] and not is_tls:
            yield f"{names[each]} is for https, and the server is called by plain http"
    if given["server_name"] and not _is_host(given["server_name"]):
        yield f"{names['server_name']} is {given['server_name']!r}, which is no name of a host"
    if ":" in given["username"]:
        # Source: RFC 7617, section 2.
        yield f"{names['username']} is {given['username']!r}; it can hold no colon"
    for each in ("username", "tenant"):
        if not (given[each].isascii() and given[each].isprintable()):
            yield f"{names[each]} is {given[each]!r}, which no header can hold"


def is_https(url: str) -> bool:
    """Tell whether an address is called by TLS."""
    return urlsplit(url).scheme == "https"


def _is_host(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return is_dns_subdomain(text)
    return True
