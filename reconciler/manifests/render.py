# SPDX-License-Identifier: Apache-2.0
"""All objects of an installation in the order in which they are applied, as values and as YAML.

Pure: options in, objects out. Which file they go to, and who applies them, is not known here.
"""

from collections.abc import Iterable, Mapping

import yaml

from reconciler.manifests.access import access
from reconciler.manifests.admission_policies import key_guard, void_policies
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
        "namespace": (_namespace(options),),
        "access": access(options),
        "policies": (policies(options),),
        "workload": (*tls_secret(options), *workload(options)),
        "admission-policies": (*void_policies(options), *key_guard(options)),
        "webhooks": (mutating_configuration(options), validating_configuration(options)),
    }


def to_yaml(objects: Iterable[Mapping[str, object]]) -> str:
    """Return the objects as YAML documents; expressions of several lines stay readable."""
    return "---\n".join(
        yaml.dump(dict(item), Dumper=_Dumper, sort_keys=False, width=10_000) for item in objects
    )


def _namespace(options: ManifestOptions) -> Object:
    labels = {**options.labels, "pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": options.namespace, "labels": labels},
    }


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a literal block, and every value out in full."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - given by the base class
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
