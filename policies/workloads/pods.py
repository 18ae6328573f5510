# SPDX-License-Identifier: Apache-2.0
"""The pods that would come of an object of a known kind, one for each of its pod templates.

What is no pod template is passed over; a template whose parts are of other types than a pod's
raises MalformedError when it is read, so that a caller can speak of the others.
"""

from collections.abc import Iterator
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
from policies.workloads.paths import Place, find, get
from policies.workloads.source import Source

MAX_REPLICAS: Final = 2**31 - 1
"""The replicas of every kind are 32-bit integers; what is beyond them is no number of pods."""

_ACCOUNT: Final = "system:serviceaccount:"
_ITEM_NAMES: Final = ("name", "groupName")


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods that come of one template. `name` is empty where the kind has but one template.

    `count` is None where the object does not say how many. `holder` is what the template lies in,
    None where nothing is there.
    """

    template: PodTemplate
    name: str
    count: int | None
    _source: Source
    holder: object = None

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
            source = Source(workloads, workload, found)
            if template.form is PodForm.SPEC and not source.has_containers(template):
                continue
            name = _name(template, place, workload)
            holder = get(template.path[:-1], place, workload)
            yield PodSet(template, name, _count(template, place, workload), source, holder)


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
