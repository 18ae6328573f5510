# SPDX-License-Identifier: Apache-2.0
"""Names that end up in pods: what the API server would refuse must be found at load.

Source: apimachinery `pkg/util/validation`, core `IsExtendedResourceName`, `ValidateTolerations`.
"""

import re
from collections.abc import Iterator
from typing import Final

from policies.documents.field import Field
from policies.documents.problems import Problem, quoted

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_DOMAIN_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_MAX_DOMAIN: Final = 253
_NATIVE_DOMAIN: Final = "kubernetes.io"


def is_qualified_name(text: str) -> bool:
    """Tell whether the text is a label key: a name of at most 63, perhaps behind a domain and /."""
    domain, slash, name = text.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or is_dns_subdomain(domain))


def is_extended_resource(text: str) -> bool:
    """Tell whether a pod can ask for a device under this name."""
    domain, slash, _ = text.rpartition("/")
    return (
        bool(slash)
        and is_qualified_name(text)
        and not domain.endswith(_NATIVE_DOMAIN)
        and not text.startswith("requests.")
    )


def is_dns_label(text: str) -> bool:
    """Tell whether the text is what namespaces and Services are named by (RFC 1123)."""
    return _DOMAIN_LABEL.fullmatch(text) is not None


def key_problems(labels: Field) -> Iterator[Problem]:
    """Yield a problem for every key of a map that is no label key."""
    for key, entry in labels.entries():
        if not is_qualified_name(key):
            yield entry.key_problem(f"{quoted(key)} is no label key")


def is_dns_subdomain(text: str) -> bool:
    """Tell whether the text is what most other objects are named by (RFC 1123)."""
    return len(text) <= _MAX_DOMAIN and all(
        _DOMAIN_LABEL.fullmatch(label) for label in text.split(".")
    )
