# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions of the custom kinds, as small as the API server takes them."""

from collections.abc import Iterable

from policies.model.workload import WorkloadKind
from tests.support.builders import Json
from tests.support.workloads import kinds

_OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""Nothing is typed, so that numbers in objects stay numbers."""


def custom_kinds() -> tuple[WorkloadKind, ...]:
    """Return the shipped kinds that are not Kubernetes' own."""
    return tuple(kind for kind in kinds() if not kind.is_built_in)


def definitions(wanted: Iterable[WorkloadKind]) -> list[Json]:
    """Return the definitions of these kinds; the last version is the stored one."""
    return [_definition(kind) for kind in wanted]


def _definition(kind: WorkloadKind) -> Json:
    last = kind.versions[-1]
    metadata: Json = {"name": f"{kind.resource}.{kind.group}"}
    if kind.group.endswith(".x-k8s.io"):  # the API server wants to see that somebody approved
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, for tests"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.resource, "singular": kind.kind.lower(), "kind": kind.kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == last,
                    "schema": {"openAPIV3Schema": _OPEN},
                    "subresources": {"status": {}},
                }
                for version in kind.versions
            ],
        },
    }
