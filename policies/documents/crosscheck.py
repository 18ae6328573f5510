# SPDX-License-Identifier: Apache-2.0
"""What no document can tell alone: names that clash or are missing, and what has no effect."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase

from policies.documents.collection import Collection
from policies.documents.compiled import Compiled
from policies.documents.field import Field
from policies.documents.precedence import check_precedence, rewrites
from policies.documents.problems import Problem, Severity, quoted
from policies.documents.suggest import did_you_mean
from policies.model.policy import Policy
from policies.model.profile import Profile, SharingMode
from policies.model.tenant import Tenant


def check_together(documents: Collection) -> Iterator[Problem]:
    """Yield every problem between documents."""
    for items in documents.by_kind():
        yield from _twice(items)
    yield from _namespaces_claimed_twice(documents.tenants)
    yield from _replaced(documents)
    yield from _missing_parts(documents)
    profiles = documents.known_profiles()
    tenants = {item.name: item.value for item in documents.tenants}
    if documents.complete:
        for tenant in documents.tenants:
            yield from _tenant_references(tenant, {*profiles, *documents.unidentified})
        for policy in documents.policies:
            yield from _policy_references(
                policy, {*profiles, *documents.unidentified}, {*tenants, *documents.unidentified}
            )
        yield from _test_references(documents)
    for policy in documents.policies:
        yield from _form(policy, profiles, tenants)
    yield from check_precedence(documents.policies, profiles)


def _twice(items: Iterable[Compiled[object]]) -> Iterator[Problem]:
    first: dict[str, Compiled[object]] = {}
    for item in items:
        if item.name and first.setdefault(item.name, item) is not item:
            place = first[item.name].place
            name = item.root.at("metadata", "name")
            yield name.problem(f"there is one of this name already, in {place}")


def _namespaces_claimed_twice(tenants: Iterable[Compiled[Tenant]]) -> Iterator[Problem]:
    owner: dict[str, Compiled[Tenant]] = {}
    for tenant in tenants:
        for name in tenant.root.at("spec", "namespaces", "names").items():
            other = owner.setdefault(name.text(), tenant)
            if other.name != tenant.name:
                message = f"namespace {quoted(name.text())} is tenant {other.name}'s already"
                yield name.problem(f"{message}, in {other.place}")


def _replaced(documents: Collection) -> Iterator[Problem]:
    for profile in documents.profiles:
        if profile.name in documents.shipped:
            name = profile.root.at("metadata", "name")
            yield name.problem("replaces the shipped profile of its name", severity=Severity.NOTE)


def _missing_parts(documents: Collection) -> Iterator[Problem]:
    """Tell of a set that refuses everything; it is served, since that is the safe way."""
    if not documents.complete:
        return
    if not documents.tenants:
        message = "there is no Tenant: every GPU pod is in a namespace of no tenant (NoTenant)"
        yield Problem(Severity.WARNING, message)
    elif not any(rewrites(policy.value) for policy in documents.policies):
        message = "no GPUPolicy rewrites: every GPU pod of a tenant is refused (NoPolicy)"
        yield Problem(Severity.WARNING, message)


def _tenant_references(tenant: Compiled[Tenant], profiles: AbstractSet[str]) -> Iterator[Problem]:
    for item in tenant.root.at("spec", "profiles").items():
        pattern = item.text()
        if any(fnmatchcase(name, pattern) for name in profiles):
            continue
        if set(pattern) & set("*?["):
            message = f"no profile's name matches {quoted(pattern)}"
            yield item.problem(message, severity=Severity.WARNING)
        else:
            yield _missing("profile", item, profiles)


def _policy_references(
    policy: Compiled[Policy], profiles: AbstractSet[str], tenants: AbstractSet[str]
) -> Iterator[Problem]:
    spec = policy.root.at("spec")
    for item in spec.at("match", "tenants").items():
        if item.text() not in tenants:
            yield _missing("tenant", item, tenants)
    profile = spec.at("rewrite", "profile")
    if profile.exists and profile.text() not in profiles:
        yield _missing("profile", profile, profiles)


def _test_references(documents: Collection) -> Iterator[Problem]:
    """Tell of a misspelt policy; no error, since a suite may be loaded without the policies."""
    names = [policy.name for policy in documents.policies]
    for test in documents.tests if names else ():
        for case in test.root.at("spec", "cases").items():
            policy = case.at("expect", "policy")
            if policy.exists and policy.text() not in names:
                yield _missing("policy", policy, names, Severity.WARNING)


def _missing(
    what: str, field: Field, known: Iterable[str], severity: Severity = Severity.ERROR
) -> Problem:
    hint = did_you_mean(field.text(), known)
    return field.problem(f"there is no {what} {quoted(field.text())}", hint, severity)


def _form(
    policy: Compiled[Policy],
    profiles: Mapping[str, Profile | None],
    tenants: Mapping[str, Tenant],
) -> Iterator[Problem]:
    """Compare a policy with the form that it gives."""
    spec, profile = policy.root.at("spec"), profiles.get(policy.value.profile or "")
    if profile is None:
        return
    if policy.value.exclusive and profile.mode is not SharingMode.EXCLUSIVE:
        message = f"needs a profile of mode Exclusive; {profile.name} is {profile.mode}"
        yield spec.at("exclusive").problem(message)
    for item in spec.at("match", "tenants").items():
        tenant = tenants.get(item.text())
        if tenant is not None and not tenant.may_use(profile.name):
            message = (
                f"tenant {tenant.name} may not use profile {profile.name}: its pods are refused"
            )
            yield item.problem(message, severity=Severity.WARNING)
