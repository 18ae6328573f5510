# SPDX-License-Identifier: Apache-2.0
"""A policy beside the profiles that it may give: what they cannot do, and what never happens.

Whether the names exist is for `references.py`.
"""

from collections.abc import Iterator, Mapping

from policies.admission.fitting import cost, gib, is_at_least
from policies.documents.candidates import Candidate, Candidates
from policies.documents.collection import Collection
from policies.documents.compiled import Compiled
from policies.documents.problems import Problem, Severity
from policies.model.policy import Policy
from policies.model.profile import SharingMode
from policies.model.tenant import Tenant
from policies.vendors import Catalog


def check_forms(documents: Collection, catalog: Catalog) -> Iterator[Problem]:
    """Yield problems of all policies that name a profile."""
    tenants = {item.name: item.value for item in documents.tenants}
    known = Candidates(documents.known_profiles(), tenants, catalog)
    for policy in documents.policies:
        rewrite = policy.root.at("spec", "rewrite")
        names = (rewrite.at("profile"), *rewrite.at("fit", "candidates").items())
        named = [name for name in names if name.exists]
        found = known.named_by(named)
        yield from _exclusive(policy, found)
        yield from _guaranteed(policy, tenants)
        yield from _never_given(found, known)
        if found and len(found) == len(named):  # what is missing might be what is asked for
            yield from _too_weak(policy, found)
            yield from _limit(policy, found)
            yield from _default(policy, found)
            yield from _users(policy, found, known)


def _exclusive(policy: Compiled[Policy], found: list[Candidate]) -> Iterator[Problem]:
    exclusive = policy.root.at("spec", "exclusive")
    shared = (c.profile for c in found if c.profile.mode is not SharingMode.EXCLUSIVE)
    if exclusive.boolean() and (profile := next(shared, None)) is not None:
        what = "candidates" if policy.value.fit is not None else "a profile"
        message = f"needs {what} of mode Exclusive; {profile.name} is {profile.mode}"
        yield exclusive.problem(message)


def _guaranteed(policy: Compiled[Policy], tenants: Mapping[str, Tenant]) -> Iterator[Problem]:
    """Tell of tenants whose exclusive pods can never be admitted: they must fit a guarantee."""
    if not policy.value.exclusive:
        return
    for item in policy.root.at("spec", "match", "tenants").items():
        tenant = tenants.get(item.text())
        if tenant is not None and not tenant.most_guarantee_milli:
            message = f"tenant {tenant.name} is guaranteed nothing: its exclusive pods are refused"
            yield item.problem(message, severity=Severity.WARNING)


def _too_weak(policy: Compiled[Policy], found: list[Candidate]) -> Iterator[Problem]:
    limit = policy.value.memory_limit
    if limit is None or any(is_at_least(c.profile.strength, limit.minimum_strength) for c in found):
        return
    have = ", ".join(f"{c.profile.name} has {c.profile.strength}" for c in found)
    field = policy.root.at("spec", "memoryLimit", "minimumStrength")
    yield field.problem(f"no form that the policy gives is as strong: {have}")


def _limit(policy: Compiled[Policy], found: list[Candidate]) -> Iterator[Problem]:
    value = policy.value.memory_limit.value_mib if policy.value.memory_limit else None
    most = _largest_mib(found)
    if value is not None and most is not None and value > most:
        message = f"is more than there is: {gib(most)} at most, which then is the limit"
        field = policy.root.at("spec", "memoryLimit", "value")
        yield field.problem(message, severity=Severity.WARNING)


def _default(policy: Compiled[Policy], found: list[Candidate]) -> Iterator[Problem]:
    default = policy.value.fit.memory.default_mib if policy.value.fit else None
    most = _largest_mib(found)
    if default is not None and most is not None and default > most:
        message = f"fits no candidate, of which the largest has {gib(most)}"
        field = policy.root.at("spec", "rewrite", "fit", "memory", "default")
        yield field.problem(message, severity=Severity.WARNING)


def _largest_mib(found: list[Candidate]) -> int | None:
    sizes = [candidate.memory_mib for candidate in found]
    return max((s for s in sizes if s is not None), default=None) if None not in sizes else None


def _users(
    policy: Compiled[Policy], found: list[Candidate], known: Candidates
) -> Iterator[Problem]:
    """Compare with what the tenants may use; not each of them need use each candidate."""
    fits, listed = policy.value.fit is not None, policy.root.at("spec", "match", "tenants")
    matched = [(item, t) for item in listed.items() if (t := known.tenants.get(item.text()))]
    for item, tenant in matched:
        if not any(known.may_use(tenant, c.profile.name) for c in found):
            which = "any candidate" if fits else f"profile {found[0].profile.name}"
            message = f"tenant {tenant.name} may not use {which}: its pods are refused"
            yield item.problem(message, severity=Severity.WARNING)
    lists = {tenant.profiles for _, tenant in matched}
    for candidate in found if fits and known.tenants else ():
        users = known.users(candidate.profile.name)
        if not (users & lists if listed.exists else users):
            message = f"no tenant that the policy matches may use {candidate.profile.name}"
            yield candidate.named.problem(message, severity=Severity.WARNING)


def _never_given(found: list[Candidate], known: Candidates) -> Iterator[Problem]:
    """Tell of candidates that another one goes before wherever both are offered."""
    by_cost = sorted(found, key=lambda c: cost(c.profile))  # stable: of equal ones the first listed
    for index, candidate in enumerate(by_cost):
        better = next((c for c in by_cost[:index] if _beats(c, candidate, known)), None)
        if better is not None:
            message = (
                f"is given only where no node offers {better.profile.name}, which costs no more "
                "and has as much memory"
            )
            yield candidate.named.problem(message, severity=Severity.WARNING)


def _beats(one: Candidate, other: Candidate, known: Candidates) -> bool:
    """Tell whether the first, which costs no more, does all that the other does on its nodes."""
    a, b = one.profile, other.profile
    return (
        a.name != b.name  # twice in the list, which is said already
        and one.memory_mib is not None
        and other.memory_mib is not None
        and one.memory_mib >= other.memory_mib
        and a.vendor == b.vendor
        and a.compute_percent >= b.compute_percent
        and a.allow_multiple >= b.allow_multiple
        and is_at_least(a.strength, b.strength)
        and (not a.products or 0 < len(b.products) == len({*a.products} & {*b.products}))
        and known.users(a.name) >= known.users(b.name)
    )
