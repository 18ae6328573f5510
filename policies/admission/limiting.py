# SPDX-License-Identifier: Apache-2.0
"""The memory limits that policy sets, by the variables that each form obeys.

MPS: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, by device, for each process of the container. HAMi-core:
CUDA_DEVICE_MEMORY_LIMIT, for the container. A plain time slice obeys nothing: GPU_MEMORY_LIMIT is
advice to the program. MIG instances and whole GPUs have their own memory and get no variable.
Sources: NVIDIA's MPS documentation; Project-HAMi/HAMi-core.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.admission.context import Context
from policies.admission.grant import Grant
from policies.model.decision import Violation
from policies.model.policy import MemoryLimit, Policy, UserValue
from policies.model.profile import Limiter, Profile, SharingMode
from policies.model.quantity import QuantityError, parse_mib
from policies.model.reasons import Reason
from policies.pod.reading import objects_at
from policies.rewrite.offers import known_mib

MPS_VARIABLE = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
HAMI_VARIABLE = "CUDA_DEVICE_MEMORY_LIMIT"
ADVICE_VARIABLE = "GPU_MEMORY_LIMIT"
VARIABLES = frozenset({MPS_VARIABLE, HAMI_VARIABLE, ADVICE_VARIABLE})
"""All that Sluice sets, apart from the one that keeps devices out."""

_MOST_PROCESSES = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """What is to be set, by container and variable, and what stands against it."""

    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()

    @property
    def overridden(self) -> frozenset[tuple[str, str]]:
        """Return the variables that are set, by container."""
        return frozenset((c, name) for c, found in self.variables.items() for name in found)


def limits_of(context: Context, grants: tuple[Grant, ...]) -> Limits:
    """Return the limits of all grants whose policy sets one. Raises MalformedError."""
    variables: dict[str, dict[str, str]] = {}
    violations: list[Violation] = []
    for grant in grants:
        policy = grant.policy
        if policy is None or policy.memory_limit is None:
            continue
        found = _limit(context, policy, policy.memory_limit, grant)
        if isinstance(found, Violation):
            violations.append(found)
        elif found:
            variables.setdefault(grant.asked.container.name, {}).update(found)
    return Limits(variables, tuple(dict.fromkeys(violations)))


def _limit(
    context: Context, policy: Policy, limit: MemoryLimit, grant: Grant
) -> Mapping[str, str] | Violation:
    mib = _mib(context, limit, grant)
    if mib is None:
        return {}
    written = _variable(context, limit, grant, mib)
    if isinstance(written, Violation) or written is None:
        return written or {}
    name, value = written
    own = [e for e in objects_at(grant.asked.container.raw, "env") if e.get("name") == name]
    if len(own) == 1 and _states_it(policy, name, own[0].get("value"), mib):
        return {}
    if own and limit.user_value is UserValue.REFUSE:
        return Violation(
            Reason.DEVICE_VARIABLE,
            f"container {grant.asked.container.name}: the variable {name} is set by policy "
            f"{policy.name} to {value}: take it out",
        )
    return {name: value}


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


def _variable(
    context: Context, limit: MemoryLimit, grant: Grant, mib: int
) -> tuple[str, str] | Violation | None:
    match _obeyed(grant.profile):
        case "mps":
            processes = _processes(context, limit)
            if isinstance(processes, Violation):
                return processes
            each = max(mib // processes, 1)
            return MPS_VARIABLE, ",".join(f"{device}={each}M" for device in range(grant.count))
        case "hami":
            return HAMI_VARIABLE, f"{mib}m"
        case "advice":
            return ADVICE_VARIABLE, f"{mib}Mi"
    return None


def _obeyed(profile: Profile) -> str:
    if profile.mode is SharingMode.MPS:
        return "mps"
    if profile.limiter is Limiter.HAMI_CORE:
        return "hami"
    return "advice" if profile.mode is SharingMode.TIME_SLICE else ""


def _processes(context: Context, limit: MemoryLimit) -> int | Violation:
    key = limit.processes_annotation
    text = context.pod.annotations.get(key, "1")
    if text.isascii() and text.isdecimal() and 0 < int(text) <= _MOST_PROCESSES:
        return int(text)
    return Violation(
        Reason.INVALID_NEED,
        f"annotation {key}: {text[:32]!r} is no number of processes from 1 to {_MOST_PROCESSES}",
    )


def _states_it(policy: Policy, name: str, value: object, mib: int) -> bool:
    """Tell whether the user has stated the need by this very variable, so that it says it all."""
    if policy.fit is None or policy.fit.memory.env != name:
        return False
    try:
        return parse_mib(value) == mib
    except QuantityError:
        return False
