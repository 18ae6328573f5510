# SPDX-License-Identifier: Apache-2.0
"""The CustomResourceDefinitions of the documents, generated from the schemas of the documents.

Every kind but the local one is a resource of the whole cluster, since tenants and policies speak
of all namespaces. Pure. Source: apiextensions.k8s.io/v1.
"""

from collections.abc import Mapping
from typing import Final

from policies.documents.kinds import Kind
from policies.documents.schemas import read_schema
from reconciler.kube.document_resources import API_KINDS, GROUP, VERSION, plural
from reconciler.manifests.columns import columns
from reconciler.manifests.status_schemas import status_schema
from reconciler.manifests.structural import structural
from reconciler.manifests.text import to_yaml

Object = dict[str, object]

CATEGORY: Final = "sluice"
"""`kubectl get sluice` lists the objects of all kinds."""

_HEADER: Final = "# SPDX-License-Identifier: Apache-2.0\n# Rendered; do not edit: {subject}.\n"
_SHORT_NAMES: Final[Mapping[str, str]] = {
    "Exemption": "gpuex",
    "GPUPolicy": "gpupol",
    "GPUPool": "gpool",
    "ReclaimPolicy": "recpol",
    "SharingProfile": "gpuprof",
    "Tenant": "tnt",
}


def crds() -> tuple[Object, ...]:
    """Return the definition of every kind, by the name of its resource."""
    return tuple(crd(kind) for kind in sorted(API_KINDS, key=plural))


def crd(kind: Kind) -> Object:
    """Return the definition of one kind."""
    version: Object = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column.to_json() for column in columns(kind)],
        "schema": {"openAPIV3Schema": structural(read_schema(kind), status_schema(kind))},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural(kind)}.{GROUP}",
            "labels": {"app.kubernetes.io/name": "sluice"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": _names(kind),
            "versions": [version],
        },
    }


def _names(kind: Kind) -> Object:
    names: Object = {
        "kind": str(kind),
        "listKind": f"{kind}List",
        "plural": plural(kind),
        "singular": kind.lower(),
        "categories": [CATEGORY],
    }
    short = _SHORT_NAMES.get(kind)
    return {**names, "shortNames": [short]} if short else names


def crd_files() -> Mapping[str, str]:
    """Return the text of each file of manifests/crds by its name."""
    files = {
        f"{plural(kind)}.yaml": _HEADER.format(subject=f"the kind {kind}")
        + "---\n"
        + to_yaml([crd(kind)])
        for kind in sorted(API_KINDS, key=plural)
    }
    resources = "".join(f"- {name}\n" for name in files)
    kustomization = (
        _HEADER.format(subject="the kinds of documents")
        + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
        + resources
    )
    return {**files, "kustomization.yaml": kustomization}
