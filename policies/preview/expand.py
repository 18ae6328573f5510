# SPDX-License-Identifier: Apache-2.0
"""From a manifest of any kind to the pods that would be made of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.admission.workloads import find_kind, pod_of
from policies.model.request import JsonObject, User
from policies.pod.reading import object_at, objects_at, string_at


@dataclass(frozen=True, slots=True)
class PreviewPod:
    """A pod to be previewed. `label` names the manifest it comes from, such as `deployment/llm`.

    `user` is who would create it where that is a controller, else None.
    """

    label: str
    namespace: str
    manifest: JsonObject
    user: User | None = None


@dataclass(frozen=True, slots=True)
class NoPods:
    """A manifest that holds no pods that Sluice knows of."""

    label: str


def expand(manifest: JsonObject, namespace: str) -> Iterator[PreviewPod | NoPods]:
    """Yield the pods of a manifest; a List's items one by one. Raises MalformedError.

    `namespace` is for manifests that name none.
    """
    kind, api_version = string_at(manifest, "kind"), string_at(manifest, "apiVersion")
    if kind == "List" or (kind.endswith("List") and "items" in manifest):
        for item in objects_at(manifest, "items"):
            yield from expand(item, namespace)
        return
    metadata = object_at(manifest, "metadata")
    name = string_at(metadata, "name") or f"{string_at(metadata, 'generateName')}*"
    label = f"{kind.lower() or 'manifest'}/{name}"
    own = string_at(metadata, "namespace") or namespace
    if (api_version, kind) == ("v1", "Pod"):
        yield PreviewPod(label, own, manifest)
    elif template := find_kind(api_version, kind):
        maker = User(f"system:serviceaccount:kube-system:{template.pods_maker}-controller")
        yield PreviewPod(label, own, pod_of(template, manifest, own), maker)
    else:
        yield NoPods(label)
