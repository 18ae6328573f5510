# SPDX-License-Identifier: Apache-2.0
"""What people read beside an allowed pod: short lines, printed as warnings."""

from collections.abc import Iterator

from policies.admission.context import Context
from policies.admission.forms import Grant
from policies.model.decision import Violation
from policies.model.keys import VISIBLE_DEVICES
from policies.model.policy import Enforcement, Policy
from policies.model.profile import Profile, SharingMode, Strength
from policies.pod.reading import objects_at, string_at
from policies.vendors import Form

_LIMITS = {
    Strength.HARDWARE: "hardware limit",
    Strength.PROCESS: "limit of each process",
    Strength.COOPERATIVE: "cooperative limit",
    Strength.NONE: "no memory limit",
}


def rewrites(grants: tuple[Grant, ...]) -> Iterator[str]:
    """Yield a line for each distinct rewrite that changes what the pod asks for."""
    lines = {f"sluice: {rewrite(grant)}": None for grant in grants if _changes(grant)}
    yield from lines


def _changes(grant: Grant) -> bool:
    """Tell whether less is given than was asked for; a share may go by the whole device's name."""
    is_part = grant.name.form is Form.WHOLE and grant.profile.mode is not SharingMode.EXCLUSIVE
    return is_part or grant.profile.resource != grant.name.resource


def rewrite(grant: Grant) -> str:
    """Return what became of one request: `nvidia.com/gpu 1 -> nvidia.com/mig-1g.10gb 1 (...)`."""
    by = f" by policy {grant.policy.name}" if grant.policy else ""
    return (
        f"{grant.name.resource} {grant.count} -> {grant.profile.resource} {grant.count} "
        f"({describe(grant.profile)}){by}"
    )


def describe(profile: Profile) -> str:
    """Return how much of a GPU a profile is, and how hard its memory limit."""
    limit = _LIMITS[profile.strength]
    if profile.memory_mib is not None:
        return f"{profile.memory_mib / 1024:.1f} GiB usable, {limit}"
    charge = profile.charge
    part = f"{charge.numerator}/{charge.denominator} of a GPU"
    return f"{part}, {limit}" if charge.denominator > 1 else "whole GPUs"


def not_offered(profile: Profile) -> str:
    """Return that no node offers a profile now, so that the pod will wait."""
    return (
        f"sluice: no node offers {profile.resource} as profile {profile.name} needs it: "
        "the pod will wait"
    )


def unenforced(matched: tuple[Policy, ...], grants: tuple[Grant, ...]) -> Iterator[str]:
    """Yield what a policy on trial (Warn) would have given, had it been in force."""
    deciding = next((grant.policy for grant in grants if grant.policy), None)
    for policy in matched:
        if policy is deciding:
            return
        if policy.profile is not None and policy.enforcement is Enforcement.WARN:
            yield f"sluice: policy {policy.name} (Warn) would give profile {policy.profile}"


def advice(violation: Violation) -> str:
    """Return a violation that is not enforced."""
    return f"sluice: {violation} (policy {violation.policy} only warns)"


def env_from(context: Context) -> Iterator[str]:
    """Yield a line for a GPU container whose environment comes from where nobody can look."""
    for asked in context.asked:
        for source in objects_at(asked.container.raw, "envFrom"):
            if asked.counts and VISIBLE_DEVICES.startswith(string_at(source, "prefix")):
                yield (
                    f"sluice: container {asked.container.name}: envFrom must not hold "
                    f"{VISIBLE_DEVICES}; give it a prefix to be sure"
                )
                break
