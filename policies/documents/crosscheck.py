# SPDX-License-Identifier: Apache-2.0
"""What no document can tell alone: names that clash or are missing, and what has no effect."""

from collections.abc import Iterable, Iterator

from policies.documents.collection import Collection
from policies.documents.compiled import Compiled
from policies.documents.forms import check_forms
from policies.documents.overlap import are_disjoint
from policies.documents.precedence import check_precedence, rewrites
from policies.documents.problems import Problem, Severity, quoted
from policies.documents.references import check_references
from policies.documents.suggest import did_you_mean
from policies.model.labels import Expression
from policies.model.policy import Match
from policies.model.pool import Pool
from policies.model.profile import ShareWith
from policies.model.reclaim import ReclaimPolicy
from policies.model.tenant import Tenant
from policies.vendors import Catalog

_NAMED = 3
"""So many of many are named."""


def check_together(documents: Collection, catalog: Catalog) -> Iterator[Problem]:
    """Yield every problem between documents."""
    for items in documents.by_kind():
        yield from _twice(items)
    yield from _namespaces_claimed_twice(documents.tenants)
    yield from _pools_of_the_same_nodes(documents.pools)
    yield from _cohorts_named_twice(documents.reclaim_policies)
    yield from _resources_of_nobody(documents, catalog)
    yield from _replaced(documents)
    yield from _missing_parts(documents)
    if documents.complete:
        yield from check_references(documents)
    yield from _without_cohort(documents)
    yield from _sparing_nothing(documents)
    yield from check_forms(documents, catalog)
    yield from check_precedence(documents.policies, documents.known_profiles())


def _twice(items: Iterable[Compiled[object]]) -> Iterator[Problem]:
    first: dict[str, Compiled[object]] = {}
    for item in items:
        if item.name and first.setdefault(item.name, item) is not item:
            other = first[item.name]
            name = item.root.at("metadata", "name")
            yield name.problem(f"there is one of this name already, in {other.place}")
            if not item.root.subject.document.has_lines:
                # Files and API are kept by different people: each must see it where they look.
                name = other.root.at("metadata", "name")
                yield name.problem(f"there is one of this name too, as {item.place}")


def _namespaces_claimed_twice(tenants: Iterable[Compiled[Tenant]]) -> Iterator[Problem]:
    owner: dict[str, Compiled[Tenant]] = {}
    for tenant in tenants:
        for name in tenant.root.at("spec", "namespaces", "names").items():
            other = owner.setdefault(name.text(), tenant)
            if other.name != tenant.name:
                message = f"namespace {quoted(name.text())} is tenant {other.name}'s already"
                yield name.problem(f"{message}, in {other.place}")


def _pools_of_the_same_nodes(pools: Iterable[Compiled[Pool]]) -> Iterator[Problem]:
    first: dict[frozenset[Expression], Compiled[Pool]] = {}
    for pool in pools:
        other = first.setdefault(frozenset(pool.value.nodes.expressions), pool)
        if other.name != pool.name and pool.is_sound:
            message = f"selects the same nodes as pool {other.name}, in {other.place}"
            selector = pool.root.at("spec", "nodes", "selector")
            yield selector.problem(message, severity=Severity.WARNING)


def _cohorts_named_twice(policies: Iterable[Compiled[ReclaimPolicy]]) -> Iterator[Problem]:
    first: dict[str | None, Compiled[ReclaimPolicy]] = {}
    for policy in policies:
        cohorts = policy.root.at("spec", "cohorts")
        for item in cohorts.items():
            other = first.setdefault(item.text(), policy)
            if other.name != policy.name:
                message = f"cohort {quoted(item.text())} has ReclaimPolicy {other.name} already"
                yield item.problem(f"{message}, in {other.place}")
        if not cohorts.exists and cohorts.is_sound:
            other = first.setdefault(None, policy)
            if other.name != policy.name:
                message = f"without cohorts it speaks of all, as {other.name} does already"
                yield policy.root.at("spec").problem(f"{message}, in {other.place}")


def _resources_of_nobody(documents: Collection, catalog: Catalog) -> Iterator[Problem]:
    """Tell of ceilings on what is no GPU resource of any vendor: they bound nothing."""
    known = {profile.resource for profile in documents.known_profiles().values() if profile}
    for tenant in documents.tenants:
        for name, quota in tenant.root.at("spec", "quota", "resources").entries():
            if catalog.classify(name) is None:
                message = f"{quoted(name)} is no known GPU resource: this bounds nothing"
                hint = did_you_mean(name, known)
                yield quota.key_problem(message, hint, severity=Severity.WARNING)


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


def _without_cohort(documents: Collection) -> Iterator[Problem]:
    """Tell for whom sharing with the cohort is sharing with nobody else."""
    tenants = [item.value for item in documents.tenants if item.value.cohort is None]
    for item in documents.profiles:
        if item.value is None or item.value.share_with is not ShareWith.COHORT:
            continue
        alone = [tenant.name for tenant in tenants if tenant.may_use(item.name)]
        if alone:
            more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
            who = ("tenant " if len(alone) == 1 else "tenants ") + ", ".join(alone[:_NAMED]) + more
            message = f"means the tenant alone for {who}, being in no cohort"
            yield item.root.at("spec", "shareWith").problem(message, severity=Severity.NOTE)


def _sparing_nothing(documents: Collection) -> Iterator[Problem]:
    """Tell of a policy that certainly matches no pod that an exemption speaks of."""
    policies = {policy.name: policy for policy in documents.policies if policy.is_sound}
    for item in documents.exemptions if documents.complete else ():
        exemption = item.value
        match = Match(exemption.tenants, exemption.namespaces, exemption.labels)
        for name in item.root.at("spec", "policies").items():
            policy = policies.get(name.text())
            if item.is_sound and policy and are_disjoint(match, policy.value.match):
                message = f"policy {policy.name} speaks of none of these pods: they need no sparing"
                yield name.problem(message, severity=Severity.WARNING)
