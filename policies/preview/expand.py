# SPDX-License-Identifier: Apache-2.0
"""From a manifest of any kind to the pods that would be made of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.model.request import JsonObject, User
from policies.model.workload import Workloads
from policies.pod.reading import object_at, objects_at, string_at
from policies.workloads.pods import PodSet, pod_sets
from policies.workloads.source import name_of


@dataclass(frozen=True, slots=True)
class PreviewPod:
    """A pod to be previewed. `label` names what it comes from: `pytorchjob/c18 (Worker x 2)`.

    `user` is who would create it where that is a controller, else None. `count` is how many there
    will be, None where the manifest does not say.
    """

    label: str
    namespace: str
    manifest: JsonObject
    user: User | None = None
    count: int | None = 1


@dataclass(frozen=True, slots=True)
class NoPods:
    """A manifest that holds no pods that Sluice knows of, and what is to be said of it anyhow."""

    label: str
    manifest: JsonObject
    notes: tuple[str, ...] = ()


def expand(
    manifest: JsonObject, namespace: str, workloads: Workloads
) -> Iterator[PreviewPod | NoPods]:
    """Yield the pods of a manifest; a List's items one by one. Raises MalformedError.

    `namespace` is for manifests that name none.
    """
    kind, api_version = string_at(manifest, "kind"), string_at(manifest, "apiVersion")
    if kind == "List" or (kind.endswith("List") and "items" in manifest):
        for item in objects_at(manifest, "items"):
            yield from expand(item, namespace, workloads)
        return
    label = f"{kind.lower() or 'manifest'}/{name_of(manifest) or '*'}"
    own = string_at(object_at(manifest, "metadata"), "namespace") or namespace
    if (api_version, kind) == ("v1", "Pod"):
        yield PreviewPod(label, own, manifest)
        return
    known = workloads.of_manifest(api_version, kind)
    found = list(pod_sets(workloads, known, manifest)) if known else []
    for pods in found:
        yield PreviewPod(_label(label, pods), own, pods.pod(own), pods.user, pods.count)
    if not found:
        yield NoPods(label, manifest)


def _label(label: str, pods: PodSet) -> str:
    """Return the manifest's label with the template's name and how often it is used."""
    times = f"x {pods.count}" if pods.count not in (None, 1) else ""
    which = " ".join(part for part in (pods.name, times) if part)
    return f"{label} ({which})" if which else label
