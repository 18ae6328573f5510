# SPDX-License-Identifier: Apache-2.0
"""What one GPU pod of a tenant deserves: its policies, forms, demand, charge and violations."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policies.admission import wording
from policies.admission.ceilings import never_admitted
from policies.admission.charging import Cost, cost_of
from policies.admission.companions import companions_of
from policies.admission.context import Context
from policies.admission.forms import given_counts, grants, is_exclusive
from policies.admission.gang_wording import gang_faults
from policies.admission.grant import Grant
from policies.admission.limiting import limits_of
from policies.admission.matching import Matched, matching, validate
from policies.admission.over_quota import over_quota
from policies.admission.placing import place
from policies.admission.reach import Reach, reach_of
from policies.admission.scopes import Scopes
from policies.checks.registry import run_checks
from policies.model.decision import Violation
from policies.model.policy import Enforcement, Policy
from policies.model.tenant import Tenant
from policies.pod.reading import strings_at
from policies.rewrite.demand import NOTHING, Demand
from policies.rewrite.offers import offer


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found. `grants` is empty where the pod stays as it is; `demand` is then nothing."""

    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    matched: tuple[Policy, ...] = ()
    grants: tuple[Grant, ...] = ()
    demand: Demand = NOTHING
    cost: Cost | None = None
    exclusive: bool = False
    given: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    reach: Reach = field(default_factory=Reach)


def decide_forms(context: Context, tenant: Tenant) -> Outcome:
    """Match, give forms, place, charge and validate. Raises MalformedError."""
    scopes = Scopes(context)
    speaking = matching(context, scopes)
    matched = speaking.policies
    found, refused = grants(context, speaking, scopes)
    limits = limits_of(context, found)
    companions = companions_of(tenant, found)
    placement, conflicts = place(found, strings_at(context.pod.spec, "nodeSelector"))
    cost = cost_of(found, context.policies.catalog)
    exclusive = is_exclusive(found)
    reach = reach_of(context, {g.profile.name: g.profile for g in found}.values(), placement)
    never = tuple(never_admitted(tenant, cost, reach, exclusive=exclusive))
    over = () if never else over_quota(tenant, context.facts.usage.get(tenant.name), cost, reach)
    scopes.give(found, cost, exclusive=exclusive)
    failed = [v for p in matched if p.validate for v in validate(p, scopes)]
    violations = (
        *run_checks(replace(context, overridden=limits.judged)),
        *speaking.errors,
        *refused,
        *limits.violations,
        *conflicts,
        *never,
        *over,
        *failed,
    )
    given = {a.container.name: given_counts(found, a) for a in context.asked if a.counts}
    return Outcome(
        violations=violations,
        warnings=_warnings(context, speaking, found, violations),
        matched=matched,
        grants=found,
        demand=Demand(
            resources=given,
            node_selector=placement.node_selector,
            expressions=placement.expressions_json,
            tolerations=placement.tolerations_json,
            anti_affinity=companions.anti_affinity,
            labels=companions.labels,
            env=limits.variables,
            gate=True,
        ),
        cost=cost,
        exclusive=exclusive,
        given=given,
        reach=reach,
    )


def _warnings(
    context: Context,
    matched: Matched,
    found: tuple[Grant, ...],
    violations: tuple[Violation, ...],
) -> tuple[str, ...]:
    policies, cluster = context.policies, context.facts.cluster
    profiles = {grant.profile.name: grant.profile for grant in found}
    unoffered = (
        wording.not_offered(profile)
        for profile in profiles.values()
        if not offer(profile, cluster, policies.catalog, policies.generation).is_offered
    )
    advice = (wording.advice(v) for v in violations if v.enforcement is Enforcement.WARN)
    return (
        *wording.rewrites(context, found),
        *unoffered,
        *wording.unenforced(matched.policies, found),
        *wording.exemptions(context, matched),
        *advice,
        *wording.env_from(context),
        *gang_faults(context.pod.labels, context.pod.annotations),
    )
