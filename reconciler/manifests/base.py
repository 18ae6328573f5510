# SPDX-License-Identifier: Apache-2.0
"""The files of manifests/base: the default installation as a kustomize base.

The kinds of documents are a base of their own, manifests/crds, which this one takes in.

A test compares them with what is in the tree. Who writes them there is not known here.
"""

from collections.abc import Mapping
from typing import Final

from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.render import render_groups
from reconciler.manifests.text import to_yaml

_HEADER: Final = "# SPDX-License-Identifier: Apache-2.0\n# Rendered; do not edit: {subject}.\n"
_SUBJECTS: Final = {
    "namespace": "the namespace, which the webhooks leave alone",
    "access": "the service account and what it may do",
    "policies": "the ConfigMap of policy documents, with only the settings in it",
    "workload": "the replicas, and what keeps enough of them up",
    "admission-policies": "what the API server does by itself, also while Sluice is down",
    "webhooks": "what the API server asks Sluice; apply it last",
}
_KUSTOMIZATION: Final = """\
# The Secrets with the certificates and the CA bundles of webhooks.yaml are not here: the leader
# makes and renews them. `sluice manifests --certificates` renders them from files instead.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
"""


def base_files(options: ManifestOptions) -> Mapping[str, str]:
    """Return the text of each file by its name."""
    files = {
        f"{group}.yaml": _HEADER.format(subject=_SUBJECTS[group]) + "---\n" + to_yaml(objects)
        for group, objects in render_groups(options).items()
        if group != "crds"
    }
    resources = "".join(f"- {name}\n" for name in ("../crds", *files))
    head = _HEADER.format(subject="the default installation")
    return {**files, "kustomization.yaml": head + _KUSTOMIZATION + resources}
