# SPDX-License-Identifier: Apache-2.0
"""One pod from what lies at a template's path: containers, labels and scheduling put together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.model.request import JsonObject
from policies.model.workload import PodForm, PodTemplate, Wildcard, Workloads
from policies.pod.reading import MalformedError, object_at, objects_at, string_at, strings_at
from policies.workloads.paths import find, get

_COPIED: Final = ("labels", "annotations", "finalizers")
_SCHEDULING: Final = ("affinity", "nodeSelector", "schedulerName", "tolerations", "volumes")
_APPLIED: Final = "kubectl.kubernetes.io/"
"""Annotations that kubectl writes for itself, which no controller hands on."""


def name_of(workload: JsonObject) -> str:
    """Return an object's name, or the beginning that the API server will complete."""
    metadata = object_at(workload, "metadata")
    generated = string_at(metadata, "generateName")
    return string_at(metadata, "name") or (f"{generated}*" if generated else "")


@dataclass(frozen=True, slots=True)
class Source:
    """What lies at a template's path in an object."""

    workloads: Workloads
    workload: JsonObject
    found: object

    def has_containers(self, template: PodTemplate) -> bool:
        """Tell whether there is any container, so that what lies there can become a pod."""
        if not isinstance(self.found, dict):
            return False
        paths = [("containers",), *(source.path for source in template.containers)]
        return any(value for path in paths for _, value in find(path, self.found))

    def pod(self, template: PodTemplate, namespace: str) -> JsonObject:
        """Return the pod as its controller creates it. Raises MalformedError."""
        if not isinstance(self.found, dict):
            raise MalformedError("template", "an object")
        is_spec = template.form is PodForm.SPEC
        metadata = self._metadata(template)
        spec = self._spec(template, self.found) if is_spec else object_at(self.found, "spec")
        owner = {
            "apiVersion": "v1",
            "kind": template.owner,
            "name": name_of(self.workload),
            "controller": True,
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **metadata,
                "generateName": f"{name_of(self.workload).rstrip('*')}-",
                "namespace": namespace,
                "ownerReferences": [owner],
            },
            "spec": {**self._inherited(template), **spec},
        }

    def _metadata(self, template: PodTemplate) -> JsonObject:
        """Return labels and annotations: the template's own before those that it inherits."""
        own = object_at(self._object, "metadata")
        sources = [*reversed(self._outer(template)), own]
        if template.form is PodForm.SPEC:
            sources.insert(-1, self._object)
        maps = {
            key: {
                name: text
                for source in sources
                for name, text in strings_at(source, key).items()
                if source is own or not name.startswith(_APPLIED)
            }
            for key in ("labels", "annotations")
        }
        copied = {key: own[key] for key in _COPIED if own.get(key) is not None}
        return {**copied, **{key: found for key, found in maps.items() if found}}

    def _inherited(self, template: PodTemplate) -> JsonObject:
        return {
            key: outer[key]
            for outer in reversed(self._outer(template))
            for key in _SCHEDULING
            if outer.get(key) is not None
        }

    def _outer(self, template: PodTemplate) -> list[JsonObject]:
        found = (get(path, (), self.workload) for path in template.inherits)
        return [outer for outer in found if isinstance(outer, dict)]

    def _spec(self, template: PodTemplate, found: JsonObject) -> JsonObject:
        """Return the fields of a pod's spec, with containers from wherever the kind has them."""
        spec = {key: value for key, value in found.items() if key in self.workloads.fields.spec}
        own = [self._container(item, "") for item in objects_at(found, "containers")]
        return {**spec, "containers": [*own, *self._more(template, found)]}

    def _more(self, template: PodTemplate, found: JsonObject) -> Iterator[JsonObject]:
        for source in template.containers:
            for _, item in find(source.path, found):
                if not isinstance(item, dict):
                    steps = [step for step in source.path if not isinstance(step, Wildcard)]
                    raise MalformedError(steps[-1], "made of containers")
                yield self._container(item, source.name)

    def _container(self, item: JsonObject, name: str) -> JsonObject:
        fields = self.workloads.fields.container
        known = {key: value for key, value in item.items() if key in fields}
        return {**known, "name": string_at(item, "name") or name}

    @property
    def _object(self) -> Mapping[str, object]:
        return self.found if isinstance(self.found, dict) else {}
