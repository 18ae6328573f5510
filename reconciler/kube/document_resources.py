# SPDX-License-Identifier: Apache-2.0
"""Under which resources the API serves the kinds of documents.

Pure: names. What a document says is for `policies.documents`, how the resources are defined for
`reconciler.manifests.crds`.
"""

from collections.abc import Mapping
from typing import Final

from policies.documents.kinds import Kind
from policies.model.keys import API_VERSION
from reconciler.kube.resources import Resource

GROUP: Final = API_VERSION.partition("/")[0]
VERSION: Final = API_VERSION.partition("/")[2]

API_KINDS: Final = tuple(kind for kind in Kind if kind is not Kind.POLICY_TEST)
"""Every kind but the one that is for people's machines alone."""


def plural(kind: Kind) -> str:
    """Return the resource's name, as English has it: `gpupolicies`, `tenants`, `settings`."""
    word = kind.lower()
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return word if word.endswith("s") else f"{word}s"


def resource_of(kind: Kind) -> Resource:
    """Return the resource of a kind; all are of the whole cluster."""
    return Resource(GROUP, VERSION, plural(kind), namespaced=False)


KIND_OF_PLURAL: Final[Mapping[str, Kind]] = {plural(kind): kind for kind in API_KINDS}
