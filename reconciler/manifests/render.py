# SPDX-License-Identifier: Apache-2.0
"""All objects of an installation in the order in which they are applied.

Pure: options in, objects out. Which file they go to, and who applies them, is not known here.
"""

from collections.abc import Mapping

from reconciler.manifests.access import access
from reconciler.manifests.admission_policies import key_guard, void_policies
from reconciler.manifests.crds import crds
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.webhooks import mutating_configuration, validating_configuration
from reconciler.manifests.workload import policies, tls_secret, workload

Object = dict[str, object]


def render(options: ManifestOptions) -> list[Object]:
    """Return everything; the webhook configurations come last, when all else is there to answer."""
    return [item for group in render_groups(options).values() for item in group]


def render_groups(options: ManifestOptions) -> Mapping[str, tuple[Object, ...]]:
    """Return the objects by subject, in the order in which they are applied."""
    return {
        "crds": crds() if options.has_crds else (),
        "namespace": (_namespace(options),),
        "access": access(options),
        "policies": (policies(options),) if options.has_documents else (),
        "workload": (*tls_secret(options), *workload(options)),
        "admission-policies": (*void_policies(options), *key_guard(options)),
        "webhooks": (mutating_configuration(options), validating_configuration(options)),
    }


def _namespace(options: ManifestOptions) -> Object:
    labels = {**options.labels, "pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": options.namespace, "labels": labels},
    }
