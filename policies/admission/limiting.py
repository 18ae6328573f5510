# SPDX-License-Identifier: Apache-2.0
"""The memory limits that policy sets, by the variables that each form obeys.

MPS: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, by device, for each process of the container. HAMi-core:
CUDA_DEVICE_MEMORY_LIMIT, for the container. A plain time slice obeys nothing: GPU_MEMORY_LIMIT is
advice to the program. MIG instances and whole GPUs have their own memory and get no variable.
Sources: NVIDIA's MPS documentation; Project-HAMi/HAMi-core.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from policies.admission.context import Context
from policies.admission.grant import Grant
from policies.model.decision import Violation
from policies.model.policy import MemoryLimit, Policy, UserValue
from policies.model.profile import Limiter, Profile, SharingMode
from policies.model.quantity import QuantityError, parse_mib
from policies.model.reasons import Reason
from policies.model.request import JsonObject
from policies.pod.reading import objects_at
from policies.pod.view import Container
from policies.rewrite.offers import known_mib


class Obeyed(StrEnum):
    """The variable that a form obeys, or by which its program is advised."""

    MPS = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
    HAMI_CORE = "CUDA_DEVICE_MEMORY_LIMIT"
    ADVICE = "GPU_MEMORY_LIMIT"


VARIABLES = frozenset(map(str, Obeyed))
"""All that Sluice sets, apart from the one that keeps devices out."""

_MOST_PROCESSES = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """What is to be set, by container and variable, and what stands against it."""

    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    refused: frozenset[tuple[str, str]] = frozenset()

    @property
    def judged(self) -> frozenset[tuple[str, str]]:
        """Return the variables that are set, or refused here, by container."""
        return self.refused | {(c, name) for c, found in self.variables.items() for name in found}


def limits_of(context: Context, grants: tuple[Grant, ...]) -> Limits:
    """Return the limits of all grants whose policy sets one. Raises MalformedError."""
    variables: dict[str, dict[str, str]] = {}
    violations: list[Violation] = []
    refused: set[tuple[str, str]] = set()
    for grant in grants:
        policy = grant.limiting_policy
        if policy is None or policy.memory_limit is None:
            continue
        container = grant.asked.container
        found = _limit(context, policy.memory_limit, grant)
        if isinstance(found, Violation):
            violations.append(found)
            continue
        for name, (value, mib) in found.items():
            own = [e for e in objects_at(container.raw, "env") if e.get("name") == name]
            if _states_it(policy, own, name, mib):
                continue
            if own and policy.memory_limit.user_value is UserValue.REFUSE:
                violations.append(_taken(policy, container, name, value))
                refused.add((container.name, name))
            else:
                variables.setdefault(container.name, {})[name] = value
    return Limits(variables, tuple(dict.fromkeys(violations)), frozenset(refused))


def _taken(policy: Policy, container: Container, name: str, value: str) -> Violation:
    return Violation(
        Reason.DEVICE_VARIABLE,
        f"container {container.name}: the variable {name} is set by policy {policy.name} to "
        f"{value}: take it out",
    )


def _mib(context: Context, limit: MemoryLimit, grant: Grant) -> int | None:
    """Return the limit: the need that is covered, or a value of at most what the boards have.

    What nodes have now is not looked at: it may move between the passes, which must agree.
    """
    if limit.from_fit:
        return grant.need_mib
    known = known_mib(grant.profile, context.policies.catalog)
    if limit.value_mib is None or known is None:
        return limit.value_mib
    return min(limit.value_mib, known)


def _limit(
    context: Context, limit: MemoryLimit, grant: Grant
) -> Mapping[str, tuple[str, int]] | Violation:
    """Return the variable that the form obeys, if there is one, with its value and that in MiB."""
    mib = _mib(context, limit, grant)
    obeyed = _obeyed(grant.profile)
    if mib is None or obeyed is None:
        return {}
    match obeyed:
        case Obeyed.MPS:
            processes = _processes(context, limit)
            if isinstance(processes, Violation):
                return processes
            each = max(mib // processes, 1)
            value = ",".join(f"{device}={each}M" for device in range(grant.count))
        case Obeyed.HAMI_CORE:
            value = f"{mib}m"
        case Obeyed.ADVICE:
            value = f"{mib}Mi"
    return {obeyed.value: (value, mib)}


def _obeyed(profile: Profile) -> Obeyed | None:
    if profile.mode is SharingMode.MPS:
        return Obeyed.MPS
    if profile.limiter is Limiter.HAMI_CORE:
        return Obeyed.HAMI_CORE
    return Obeyed.ADVICE if profile.mode is SharingMode.TIME_SLICE else None


def _processes(context: Context, limit: MemoryLimit) -> int | Violation:
    key = limit.processes_annotation
    text = context.pod.annotations.get(key, "1")
    if text.isascii() and text.isdecimal() and 0 < int(text) <= _MOST_PROCESSES:
        return int(text)
    return Violation(
        Reason.INVALID_NEED,
        f"annotation {key}: {text[:32]!r} is no number of processes from 1 to {_MOST_PROCESSES}",
    )


def _states_it(policy: Policy, own: Sequence[JsonObject], name: str, mib: int) -> bool:
    """Tell whether the user has stated the need by this very variable, so that it says it all."""
    if policy.fit is None or policy.fit.memory.env != name or len(own) != 1:
        return False
    try:
        return parse_mib(own[0].get("value")) == mib
    except QuantityError:
        return False
