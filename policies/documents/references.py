# SPDX-License-Identifier: Apache-2.0
"""Names of other documents: those that there are not, each with the name that is near."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fnmatch import fnmatchcase

from policies.documents.collection import Collection
from policies.documents.compiled import Compiled
from policies.documents.field import Field
from policies.documents.problems import Problem, Severity, quoted
from policies.documents.suggest import did_you_mean
from policies.model.exemption import Exemption
from policies.model.policy import Policy
from policies.model.tenant import Tenant


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that there are of each kind, with those of documents that nobody could tell."""

    profiles: AbstractSet[str]
    tenants: AbstractSet[str]
    policies: AbstractSet[str]
    pools: AbstractSet[str]


def check_references(documents: Collection) -> Iterator[Problem]:
    """Yield a problem for each name of no document; the documents must all have been read."""
    unidentified = documents.unidentified
    names = _Names(
        profiles={*documents.known_profiles(), *unidentified},
        tenants={*(tenant.name for tenant in documents.tenants), *unidentified},
        policies={*(policy.name for policy in documents.policies), *unidentified},
        pools={*(pool.name for pool in documents.pools), *unidentified},
    )
    for tenant in documents.tenants:
        yield from _of_tenant(tenant, names)
    for policy in documents.policies:
        yield from _of_policy(policy, names)
    for exemption in documents.exemptions:
        yield from _of_exemption(exemption, names)
    yield from _of_reclaim_policies(documents)
    yield from _of_tests(documents, names)


def _of_tenant(tenant: Compiled[Tenant], names: _Names) -> Iterator[Problem]:
    for item in tenant.root.at("spec", "profiles").items():
        pattern = item.text()
        if any(fnmatchcase(name, pattern) for name in names.profiles):
            continue
        if set(pattern) & set("*?["):
            message = f"no profile's name matches {quoted(pattern)}"
            yield item.problem(message, severity=Severity.WARNING)
        else:
            yield _missing("profile", item, names.profiles)
    for name, quota in tenant.root.at("spec", "quota", "pools").entries():
        if name not in names.pools:
            hint = did_you_mean(name, names.pools)
            yield quota.key_problem(f"there is no pool {quoted(name)}", hint)


def _of_policy(policy: Compiled[Policy], names: _Names) -> Iterator[Problem]:
    spec = policy.root.at("spec")
    rewrite = spec.at("rewrite")
    yield from _all_exist("tenant", spec.at("match", "tenants").items(), names.tenants)
    if rewrite.at("profile").exists:
        yield from _all_exist("profile", (rewrite.at("profile"),), names.profiles)
    yield from _all_exist("profile", rewrite.at("fit", "candidates").items(), names.profiles)


def _of_exemption(exemption: Compiled[Exemption], names: _Names) -> Iterator[Problem]:
    spec = exemption.root.at("spec")
    yield from _all_exist("policy", spec.at("policies").items(), names.policies)
    yield from _all_exist("tenant", spec.at("match", "tenants").items(), names.tenants)


def _of_reclaim_policies(documents: Collection) -> Iterator[Problem]:
    """Tell of cohorts that no tenant is in; no error, since tenants come and go."""
    known = {cohort for t in documents.tenants if (cohort := t.value.cohort) is not None}
    for policy in documents.reclaim_policies if documents.tenants else ():
        for item in policy.root.at("spec", "cohorts").items():
            if item.text() not in known:
                message = f"no tenant is in a cohort {quoted(item.text())}"
                hint = did_you_mean(item.text(), known)
                yield item.problem(message, hint, Severity.WARNING)


def _of_tests(documents: Collection, names: _Names) -> Iterator[Problem]:
    """Tell of what is misspelt; no error, since a suite may be loaded without the policies."""
    for test in documents.tests if documents.policies else ():
        for case in test.root.at("spec", "cases").items():
            for what, known in (("policy", names.policies), ("profile", names.profiles)):
                field = case.at("expect", what)
                if field.exists:
                    yield from _all_exist(what, (field,), known, Severity.WARNING)


def _all_exist(
    what: str,
    fields: Iterable[Field],
    known: AbstractSet[str],
    severity: Severity = Severity.ERROR,
) -> Iterator[Problem]:
    for field in fields:
        if field.text() not in known:
            yield _missing(what, field, known, severity)


def _missing(
    what: str, field: Field, known: Iterable[str], severity: Severity = Severity.ERROR
) -> Problem:
    hint = did_you_mean(field.text(), known)
    return field.problem(f"there is no {what} {quoted(field.text())}", hint, severity)
