# SPDX-License-Identifier: Apache-2.0
"""Which form each GPU container gets: by policy for whole devices, by name for shares."""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from policies.admission.context import Context
from policies.admission.fitting import Wanted, choose, is_at_least
from policies.admission.grant import Grant
from policies.admission.matching import Matched
from policies.admission.needs import Needs
from policies.admission.scopes import Scopes
from policies.model.decision import Violation
from policies.model.policy import Enforcement, Fit, Policy
from policies.model.profile import Profile, SharingMode
from policies.model.reasons import Reason
from policies.model.tenant import Tenant
from policies.pod.asked import Asked
from policies.vendors import Form, GpuName

_LONGEST_NAME = 317
"""A Kubernetes resource name: 253 characters of domain, a slash and 63."""

_MANY = 16
"""Above so many GPU names in a pod no likely ones are looked up, since each takes its time."""


def grants(
    context: Context, matched: Matched, scopes: Scopes
) -> tuple[tuple[Grant, ...], tuple[Violation, ...]]:
    """Return a grant for each GPU name of each container, or why there is none."""
    found: list[Grant] = []
    refused: list[Violation] = []
    needs = Needs(context, scopes)
    for asked in context.asked:
        answers = [_grant(context, matched, asked, name, needs) for name in asked.names]
        own = [answer for answer in answers if isinstance(answer, Grant)]
        excess = _excess(own)
        refused += [answer for answer in answers if isinstance(answer, Violation)]
        refused += [_too_many(asked, profile, count) for profile, count in excess.items()]
        found += [grant for grant in own if grant.profile.name not in excess]
    return tuple(found), tuple(refused)


def _excess(own: Iterable[Grant]) -> Mapping[str, int]:
    """Return the profiles of single shares that a container gets more of, by whatever names."""
    counts: Counter[str] = Counter()
    for grant in own:
        if not grant.profile.allow_multiple:
            counts[grant.profile.name] += grant.count
    return {profile: count for profile, count in counts.items() if count > 1}


def _too_many(asked: Asked, profile: str, count: int) -> Violation:
    return Violation(
        Reason.MULTIPLE_SHARES,
        f"container {asked.container.name}: asks for {count} of {profile}, which gives one share: "
        "more shares may be the same GPU and are not a bigger one. Ask for 1",
    )


def _grant(
    context: Context, matched: Matched, asked: Asked, name: GpuName, needs: Needs
) -> Grant | Violation:
    where = f"container {asked.container.name}"
    count = asked.counts[name.resource]
    if name.form is not Form.WHOLE:
        direct = _by_name(context, where, name)
        if isinstance(direct, Violation):
            return direct
        return _directly(context, matched, Grant(asked, name, count, direct, None), needs)
    policy = _deciding(context, matched.policies, name.vendor)
    if policy is None:
        return _unchanged(context, matched, asked, name)
    if policy.fit is not None:
        return _fitted(context, policy, policy.fit, asked, name, needs)
    profile = context.policies.profiles[policy.profile or ""]
    return _checked(context, Grant(asked, name, count, profile, policy), where)


def _directly(context: Context, matched: Matched, grant: Grant, needs: Needs) -> Grant | Violation:
    """Hold a share asked for by its name to the limit of the policy that it passes by."""
    container, profile = grant.asked.container, grant.profile
    policy = _deciding(context, matched.policies, profile.vendor)
    if policy is None or policy.memory_limit is None:
        return _checked(context, grant, f"container {container.name}")
    minimum = policy.memory_limit.minimum_strength
    if not is_at_least(profile.strength, minimum):
        return Violation(
            Reason.PROFILE_NOT_ALLOWED,
            f"container {container.name}: policy {policy.name} demands a memory limit of strength "
            f"{minimum}; profile {profile.name} has {profile.strength}: ask for the whole device's "
            "name and let the policy choose",
        )
    need = needs.of(policy, policy.fit, container) if policy.fit else None
    if isinstance(need, Violation):
        return need
    limited = replace(grant, need_mib=need, limiter=policy)
    return _checked(context, limited, f"container {container.name}")


def _deciding(context: Context, matched: tuple[Policy, ...], vendor: str | None) -> Policy | None:
    """Return the first enforced policy that gives a form of this vendor's devices."""
    for policy in matched:
        if policy.enforcement is not Enforcement.ENFORCE:
            continue
        names = policy.fit.candidates if policy.fit else (policy.profile,)
        forms = (context.policies.profiles[n] for n in names if n is not None)
        if any(profile.vendor == vendor for profile in forms):
            return policy
    return None


def _unchanged(
    context: Context, matched: Matched, asked: Asked, name: GpuName
) -> Grant | Violation:
    """Leave a device whole where an exemption spares the pod the policy that would change it."""
    spared = tuple(policy for policy, _ in matched.spared)
    if _deciding(context, spared, name.vendor) is not None:
        whole = _whole(context, name)
        if whole is not None:
            return Grant(asked, name, asked.counts[name.resource], whole, None)
    return Violation(
        Reason.NO_POLICY,
        f"container {asked.container.name}: no policy gives {name.resource} to this pod; policies "
        f"of {_tenant_name(context.tenant)} look at namespace, labels and annotations",
    )


def _whole(context: Context, name: GpuName) -> Profile | None:
    """Return the form that leaves a device whole: one that the tenant may use, that pins least."""
    tenant = context.tenant
    forms = [
        profile
        for profile in context.policies.profiles.values()
        if profile.mode is SharingMode.EXCLUSIVE and profile.resource == name.resource
    ]

    def order(profile: Profile) -> tuple[bool, int, str]:
        placement = profile.placement
        may_use = tenant is None or tenant.may_use(profile.name)
        pins = len(placement.node_selector) + len(placement.expressions)
        return not may_use, pins, profile.name

    return min(forms, key=order, default=None)


def _fitted(
    context: Context, policy: Policy, fit: Fit, asked: Asked, name: GpuName, needs: Needs
) -> Grant | Violation:
    need = needs.of(policy, fit, asked.container)
    percent = needs.compute_percent(fit)
    if isinstance(need, Violation):
        return need
    if isinstance(percent, Violation):
        return percent
    count, container = asked.counts[name.resource], asked.container.name
    wanted = Wanted(
        where=f"container {container}",
        vendor=name.vendor or "",
        count=count if fit.per_container else _most_devices(context, name),
        memory_mib=need,
        compute_percent=percent,
        claimed=context.claimed.get(container),
    )
    chosen = choose(context, policy, fit, wanted)
    if isinstance(chosen, Violation):
        return chosen
    return Grant(asked, name, count, chosen, policy, need)


def _most_devices(context: Context, name: GpuName) -> int:
    """Return the most devices of a name in one container: all get a form that allows so many."""
    return max(asked.counts.get(name.resource, 0) for asked in context.asked)


def _by_name(context: Context, where: str, name: GpuName) -> Profile | Violation:
    giving = [p for p in context.policies.profiles.values() if p.resource == name.resource]
    allowed = [p for p in giving if context.tenant is None or context.tenant.may_use(p.name)]
    if len(allowed) == 1:
        return allowed[0]
    tenant = _tenant_name(context.tenant)
    if allowed:
        names = ", ".join(profile.name for profile in allowed)
        return Violation(
            Reason.PROFILE_NOT_ALLOWED,
            f"{where}: {name.resource} may be any of {names} here: ask for the whole device's "
            "name and let the policy choose",
        )
    if giving:
        return Violation(
            Reason.PROFILE_NOT_ALLOWED,
            f"{where}: {tenant} may not use {name.resource}: {_may_use(context)}",
        )
    return Violation(
        Reason.UNKNOWN_GPU_RESOURCE,
        f"{where}: {name.resource} is given by no profile{_suggestion(context, name)}",
    )


def _checked(context: Context, grant: Grant, where: str) -> Grant | Violation:
    profile, tenant = grant.profile, context.tenant
    if tenant is not None and not tenant.may_use(profile.name):
        by = f" (policy {grant.policy.name})" if grant.policy else ""
        return Violation(
            Reason.PROFILE_NOT_ALLOWED,
            f"{where}: {_tenant_name(tenant)} may not use profile {profile.name}{by}: "
            f"{_may_use(context)}",
        )
    return grant


def _may_use(context: Context) -> str:
    tenant = context.tenant
    usable = [
        name for name in context.policies.profiles if tenant is not None and tenant.may_use(name)
    ]
    return f"it may use {', '.join(usable[:5])}" if usable else "it may use no profile"


def _tenant_name(tenant: Tenant | None) -> str:
    return f"tenant {tenant.name}" if tenant else "no tenant"


def _suggestion(context: Context, name: GpuName) -> str:
    policies, tenant = context.policies, context.tenant
    usable = [p for p in policies.profiles.values() if tenant is None or tenant.may_use(p.name)]
    vendors = {profile.vendor for profile in usable}
    whole = [vendor.whole for vendor in policies.catalog.vendors if vendor.name in vendors]
    known = sorted({*whole, *(profile.resource for profile in usable)})
    written = name.resource.lower()
    names = sum(len(asked.names) for asked in context.asked)
    is_worth_it = len(written) <= _LONGEST_NAME and names <= _MANY
    if is_worth_it and (close := difflib.get_close_matches(written, known, n=1)):
        return f": did you mean {close[0]}?"
    return f": ask for {' or '.join(whole)}" if whole else ""


def given_counts(found: Iterable[Grant], asked: Asked) -> Mapping[str, int]:
    """Return every GPU-like resource that a container shall have, zeros kept."""
    counts: dict[str, int] = dict(asked.zeros)
    for grant in found:
        if grant.asked is asked:
            resource = grant.profile.resource
            counts[resource] = counts.get(resource, 0) + grant.count
    return counts


def is_exclusive(found: Iterable[Grant]) -> bool:
    """Tell whether a policy gives whole devices that must not be taken back."""
    return any(
        grant.policy is not None
        and grant.policy.exclusive
        and grant.profile.mode is SharingMode.EXCLUSIVE
        for grant in found
    )
