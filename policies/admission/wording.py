# SPDX-License-Identifier: Apache-2.0
"""What people read beside an allowed pod: short lines, printed as warnings."""

from collections.abc import Iterator

from policies.admission.context import Context
from policies.admission.exempting import expired
from policies.admission.grant import Grant
from policies.admission.matching import Matched
from policies.model.decision import Violation
from policies.model.keys import VISIBLE_DEVICES
from policies.model.policy import Enforcement, Policy
from policies.model.profile import Profile, SharingMode, Strength
from policies.pod.reading import objects_at, string_at
from policies.rewrite.offers import offer
from policies.vendors import Form

_LIMITS = {
    Strength.HARDWARE: "hardware limit",
    Strength.PROCESS: "limit of each process",
    Strength.COOPERATIVE: "cooperative limit",
    Strength.NONE: "no memory limit",
}


def rewrites(context: Context, grants: tuple[Grant, ...]) -> Iterator[str]:
    """Yield a line for each distinct rewrite that changes what the pod asks for."""
    yield from {f"sluice: {rewrite(context, g)}": None for g in grants if _changes(g)}


def _changes(grant: Grant) -> bool:
    """Tell whether less is given than was asked for; a share may go by the whole device's name."""
    is_part = grant.name.form is Form.WHOLE and grant.profile.mode is not SharingMode.EXCLUSIVE
    return is_part or grant.profile.resource != grant.name.resource


def rewrite(context: Context, grant: Grant) -> str:
    """Return what became of one request: `nvidia.com/gpu 1 -> nvidia.com/mig-1g.10gb 1 (...)`."""
    by = f" by policy {grant.policy.name}" if grant.policy else ""
    return (
        f"{grant.name.resource} {grant.count} -> {grant.profile.resource} {grant.count} "
        f"({describe(context, grant)}){by}"
    )


def describe(context: Context, grant: Grant) -> str:
    """Return what was stated, how much a share is, and how hard its memory limit."""
    policies, profile = context.policies, grant.profile
    limit = _LIMITS[grant.strength]
    given = offer(profile, context.facts.cluster, policies.catalog, policies.generation)
    if grant.need_mib is not None and given.memory_mib is not None:
        return f"{stated(grant.need_mib)} stated, {usable(given.memory_mib)}, {limit}"
    if profile.memory_mib is not None:
        return f"{usable(profile.memory_mib)}, {limit}"
    charge = profile.charge
    part = f"{charge.numerator}/{charge.denominator} of a GPU"
    return f"{part}, {limit}" if charge.denominator > 1 else "whole GPUs"


def stated(mib: int) -> str:
    """Return MiB as they are written in manifests: 8192 is `8Gi`."""
    return f"{mib // 1024}Gi" if mib % 1024 == 0 else f"{mib}Mi"


def usable(mib: int) -> str:
    """Return MiB as people read them: 9984 is `9.8 GiB usable`."""
    return f"{mib / 1024:.1f} GiB usable"


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
        if policy.enforcement is not Enforcement.WARN:
            continue
        if policy.fit is not None:
            yield f"sluice: policy {policy.name} (Warn) would give the smallest share that fits"
        elif policy.profile is not None:
            yield f"sluice: policy {policy.name} (Warn) would give profile {policy.profile}"


def exemptions(context: Context, matched: Matched) -> Iterator[str]:
    """Yield what the pod is spared, and what it is no longer."""
    for policy, exemption in matched.spared:
        until = f"{exemption.expires_at:%Y-%m-%d}"
        yield f"sluice: exempt from policy {policy.name} until {until} by {exemption.name}"
    for policy, exemption in expired(context, matched.policies):
        ended = f"{exemption.expires_at:%Y-%m-%d}"
        yield f"sluice: exemption {exemption.name} ended on {ended}: policy {policy.name} applies"


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
