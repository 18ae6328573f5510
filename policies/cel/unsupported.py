# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes' CEL has and Sluice does not, so that a load error can say so.

Source: kubernetes/apiserver `pkg/cel/library/*.go`, 1.37.
"""

from collections.abc import Mapping
from typing import Final

UNSUPPORTED: Final[Mapping[str, tuple[str, ...]]] = {
    "authorizer": ("authorizer", "serviceAccount", "fieldSelector", "labelSelector"),
    "cidr": ("cidr", "isCIDR", "containsIP", "containsCIDR", "prefixLength", "masked"),
    "format": ("format", "format.named", "format.dns1123Label", "format.dns1123Subdomain"),
    "ip": (
        *("ip", "isIP", "ip.isCanonical", "family", "isUnspecified", "isLoopback"),
        *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
    ),
    "jsonpatch": ("jsonpatch", "jsonpatch.escapeKey"),
    "parameters": ("params",),
    "regex": ("find", "findAll"),
    "semver": ("semver", "isSemver", "major", "minor", "patch"),
    "two-variable comprehensions": ("transformMap", "transformMapEntry"),
    "url": (
        *("url", "isURL", "getScheme", "getHost", "getHostname", "getPort"),
        *("getEscapedPath", "getQuery"),
    ),
}

MACRO_CALLS: Final[Mapping[str, str]] = {"cel.@mapInsert": "transformMap"}
"""Functions that macros expand to and no runtime here has, with the macro's name."""


def library_of(name: str) -> str | None:
    """Return the library of Kubernetes that has a name which Sluice lacks."""
    for library, names in UNSUPPORTED.items():
        if name in names:
            return library
    return None
