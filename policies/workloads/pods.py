# SPDX-License-Identifier: Apache-2.0
"""The pods that would come of an object of a known kind, one for each of its pod templates.

What is no pod template is passed over; a template whose parts are of other types than a pod's
raises MalformedError when it is read, so that a caller can speak of the others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.model.request import JsonObject, User
from policies.model.workload import (
    Factor,
    PodForm,
    PodTemplate,
    Wildcard,
    WorkloadKind,
    Workloads,
)
from policies.pod.defaulting import defaulted
from policies.pod.reading import MalformedError, object_at, objects_at, string_at, strings_at
from policies.workloads.paths import Place, find, get

MAX_REPLICAS: Final = 2**31 - 1
"""The replicas of every kind are 32-bit integers; what is beyond them is no number of pods."""

_ACCOUNT: Final = "system:serviceaccount:"
_COPIED: Final = ("labels", "annotations", "finalizers")
_SCHEDULING: Final = ("affinity", "nodeSelector", "schedulerName", "tolerations", "volumes")
_ITEM_NAMES: Final = ("name", "groupName")
_APPLIED: Final = "kubectl.kubernetes.io/"
"""Annotations that kubectl writes for itself, which no controller hands on."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods that come of one template. `name` is empty where the kind has but one template.

    `count` is None where the object does not say how many.
    """

    template: PodTemplate
    name: str
    count: int | None
    _source: "_Source"

    def pod(self, namespace: str) -> JsonObject:
        """Return one of the pods as the API server would send it. Raises MalformedError."""
        return defaulted(self._source.pod(self.template, namespace), namespace)

    @property
    def user(self) -> User:
        """Return who creates the pods, as the API server authenticates service accounts."""
        account = self.template.account
        namespace = account.removeprefix(_ACCOUNT).partition(":")[0]
        own = (f"system:serviceaccounts:{namespace}",) if account.startswith(_ACCOUNT) else ()
        return User(account, groups=("system:serviceaccounts", *own, "system:authenticated"))

    @property
    def counts_replicas(self) -> bool:
        """Tell whether the count is one field called `replicas`, as people call its pods then."""
        factors = self.template.replicas or ()
        return len(factors) == 1 and factors[0].path[-1] == "replicas"


def pod_sets(workloads: Workloads, kind: WorkloadKind, workload: JsonObject) -> Iterator[PodSet]:
    """Yield the pods of each template that the object has, in the order of its kind.

    They are looked for one after another, so that a caller may stop.
    """
    for template in kind.templates:
        for place, found in _found(template, workload):
            source = _Source(workloads, workload, found)
            if template.form is PodForm.SPEC and not source.has_containers(template):
                continue
            name = _name(template, place, workload)
            yield PodSet(template, name, _count(template, place, workload), source)


def name_of(workload: JsonObject) -> str:
    """Return an object's name, or the beginning that the API server will complete."""
    metadata = object_at(workload, "metadata")
    generated = string_at(metadata, "generateName")
    return string_at(metadata, "name") or (f"{generated}*" if generated else "")


def _found(template: PodTemplate, workload: JsonObject) -> Iterator[tuple[Place, object]]:
    is_there = False
    for found in find(template.path, workload):
        is_there = True
        yield found
    if template.fallback is not None and not is_there:
        yield from find(template.fallback, workload)


def _name(template: PodTemplate, place: Place, workload: JsonObject) -> str:
    """Return the key or the item's own name that tells a template from its siblings."""
    if template.name or not place:
        return template.name
    if isinstance(place[-1], str):
        return place[-1]
    last = max(i for i, step in enumerate(template.path) if isinstance(step, Wildcard))
    item = get(template.path[: last + 1], place, workload)
    names = (item.get(key) for key in _ITEM_NAMES) if isinstance(item, dict) else ()
    named = next((name for name in names if isinstance(name, str) and name), None)
    return named or str(place[-1])


def _count(template: PodTemplate, place: Place, workload: JsonObject) -> int | None:
    if template.replicas is None:
        return None
    product = 1
    for factor in template.replicas:
        number = _number(factor, place, workload)
        if number is None:
            return None
        product *= number
    return product if product <= MAX_REPLICAS else None


def _number(factor: Factor, place: Place, workload: JsonObject) -> int | None:
    value = get(factor.path, place, workload)
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_REPLICAS:
        return None
    return max(0, value - factor.less)


@dataclass(frozen=True, slots=True)
class _Source:
    """What lies at a template's path in an object."""

    workloads: Workloads
    workload: JsonObject
    found: object

    def has_containers(self, template: PodTemplate) -> bool:
        if not isinstance(self.found, dict):
            return False
        paths = [("containers",), *(source.path for source in template.containers)]
        return any(value for path in paths for _, value in find(path, self.found))

    def pod(self, template: PodTemplate, namespace: str) -> JsonObject:
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
