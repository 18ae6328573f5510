# SPDX-License-Identifier: Apache-2.0
"""From an outcome to the decision: the pod as it should be, and how this pass answers for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from policies.admission.context import Context
from policies.admission.outcome import Outcome
from policies.model.decision import Decision, Verdict, Violation
from policies.model.facts import Facts
from policies.model.keys import DECISION, QUOTA_GATE
from policies.model.policy import Enforcement
from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from policies.model.request import JsonObject, Phase
from policies.pod.asked import effective_counts
from policies.pod.reading import object_at, objects_at, strings_at
from policies.pod.view import Container
from policies.rewrite.claim import Claim, Original
from policies.rewrite.demand import Demand
from policies.rewrite.patch import Operation, diff
from policies.rewrite.project import project, required_terms, selects, with_fields

_SHOWN = 6
_GENERATION_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod read and restored: the context, the claim it came with, and what was wrong already."""

    context: Context
    claim: Claim | None
    violations: tuple[Violation, ...]


def refuse(policies: PolicySet, facts: Facts, *violations: Violation) -> Decision:
    """Return a refusal that needs no look at the pod's parts."""
    return Decision(
        verdict=Verdict.DENIED,
        generation=policies.generation,
        violations=violations,
        touches_gpus=True,
        stale_seconds=facts.stale_seconds,
    )


def answer(subject: Subject, outcome: Outcome, *, change: bool = True) -> Decision:
    """Return this pass's decision. Without `change` the pod is let through as it is."""
    violations = (*subject.violations, *outcome.violations)
    if _refuses(violations):
        return _decision(subject, outcome, Verdict.DENIED, violations=violations)
    if not change:
        return _decision(subject, outcome, warnings=outcome.warnings, violations=violations)
    patch = _patch(subject, outcome)
    if subject.context.request.phase is Phase.MUTATE:
        told = outcome.warnings
        return _decision(subject, outcome, violations=violations, warnings=told, patch=patch)
    if not patch or subject.context.policies.settings.observes:
        return _decision(subject, outcome, violations=violations)  # the first pass has warned
    missing = Violation(Reason.REWRITE_MISSING, _missing(subject, patch))
    return _decision(subject, outcome, Verdict.DENIED, violations=(*violations, missing))


def describe(subject: Subject, outcome: Outcome) -> Decision:
    """Return the decision on the original pod, before either pass has had its say."""
    violations = (*subject.violations, *outcome.violations)
    if _refuses(violations):
        return _decision(subject, outcome, Verdict.DENIED, violations=violations)
    return _decision(subject, outcome, violations=violations, warnings=outcome.warnings)


def _refuses(violations: tuple[Violation, ...]) -> bool:
    return any(violation.enforcement is Enforcement.ENFORCE for violation in violations)


def _decision(
    subject: Subject,
    outcome: Outcome,
    verdict: Verdict = Verdict.ALLOWED,
    *,
    violations: tuple[Violation, ...],
    warnings: tuple[str, ...] = (),
    patch: tuple[Operation, ...] = (),
) -> Decision:
    context, grants = subject.context, outcome.grants
    first = next((grant for grant in grants if grant.policy), grants[0] if grants else None)
    profile = first.profile if first else None
    return Decision(
        verdict=verdict,
        generation=context.policies.generation,
        violations=violations,
        warnings=warnings,
        patch=patch,
        tenant=context.tenant.name if context.tenant else None,
        policy=first.policy.name if first and first.policy else None,
        profile=profile.name if profile else None,
        exclusive=outcome.exclusive,
        matched=tuple([policy.name for policy in outcome.matched]),
        asked=effective_counts([(a.container.kind, a.counts) for a in context.asked]),
        given=_given(context, outcome),
        charge_milli=outcome.cost.milli if outcome.cost else None,
        strength=str(first.strength) if first else None,
        memory_mib=outcome.cost.memory_mib if outcome.cost else None,
        touches_gpus=bool(violations) or context.pod.asks_gpus or subject.claim is not None,
        stale_seconds=context.facts.stale_seconds,
    )


def _given(context: Context, outcome: Outcome) -> Mapping[str, int]:
    return effective_counts(
        [
            (asked.container.kind, outcome.given[asked.container.name])
            for asked in context.asked
            if asked.container.name in outcome.given
        ]
    )


def _patch(subject: Subject, outcome: Outcome) -> tuple[Operation, ...]:
    context = subject.context
    raw = context.received.raw
    expected = project(raw, subject.claim, outcome.demand, context.policies.catalog)
    if outcome.grants:
        text = _claim(subject, outcome).to_annotation()
        expected = _annotated(expected, text)
    return diff(raw, expected)


def _annotated(expected: JsonObject, text: str) -> JsonObject:
    metadata = object_at(expected, "metadata")
    annotations = {**strings_at(metadata, "annotations"), DECISION: text}
    return with_fields(expected, {"metadata": with_fields(metadata, {"annotations": annotations})})


def _claim(subject: Subject, outcome: Outcome) -> Claim:
    """Return the claim of this decision: what is in the pod from us, and not from its user."""
    context, demand = subject.context, outcome.demand
    spec = context.pod.spec
    own_selector = strings_at(spec, "nodeSelector")
    own_tolerations = objects_at(spec, "tolerations")
    terms = required_terms(object_at(spec, "affinity"))
    held = [objects_at(term, "matchExpressions") for term in terms if selects(term)]
    return Claim(
        generation=_generation(subject),
        policy=next((g.policy.name for g in outcome.grants if g.policy), None),
        profiles={g.asked.container.name: g.profile.name for g in outcome.grants},
        exclusive=outcome.exclusive,
        asked={a.container.name: _original(a.container, demand) for a in context.asked},
        given=outcome.given,
        node_selector={k: v for k, v in demand.node_selector.items() if k not in own_selector},
        expressions=tuple(
            e for e in demand.expressions if not terms or any(e not in own for own in held)
        ),
        # Others may have written into the term that Sluice made: it was made all the same.
        affinity_created=bool(demand.expressions)
        and (not terms or (subject.claim is not None and subject.claim.affinity_created)),
        tolerations=tuple(t for t in demand.tolerations if t not in own_tolerations),
        anti_affinity=demand.anti_affinity,
        env=demand.env,
    )


def _generation(subject: Subject) -> str:
    """Return the generation to record.

    The second pass may run in a replica that has loaded a newer set; it recomputes the rewrite, so
    the recorded generation may stand.
    """
    current = subject.context.policies.generation
    if subject.claim is None or subject.context.request.phase is Phase.MUTATE:
        return current
    recorded = subject.claim.generation
    return recorded if recorded.isalnum() and len(recorded) <= _GENERATION_LENGTH else current


def _original(container: Container, demand: Demand) -> Original:
    amounts, written = container.gpus, demand.env.get(container.name, {})
    own = objects_at(container.raw, "env") if written else ()
    return Original(
        {a.name.resource: a.limit for a in amounts if a.limit is not None},
        {a.name.resource: a.request for a in amounts if a.request is not None},
        tuple([entry for entry in own if entry.get("name") in written]),
    )


def _missing(subject: Subject, patch: tuple[Operation, ...]) -> str:
    """Return where the pod is not as its policy demands, in words of the pod's fields."""
    raw = subject.context.received.raw
    places = list(dict.fromkeys(_place(raw, operation) for operation in patch))
    shown = ", ".join(places[:_SHOWN]) + (", ..." if len(places) > _SHOWN else "")
    if subject.claim is None:
        return (
            f"the pod was not rewritten, since Sluice's mutating webhook was not called: {shown} "
            "differ from what policy demands. Try again"
        )
    if subject.claim.generation != subject.context.policies.generation:
        return f"policies have changed since the pod was rewritten: {shown} are outdated. Try again"
    return f"another webhook or client has altered what policy demands: {shown}"


def _place(raw: JsonObject, operation: Operation) -> str:
    parts = str(operation["path"]).split("/")[1:]
    if parts[:2] == ["spec", "schedulingGates"] or "schedulingGates" in parts:
        return f"spec.schedulingGates ({QUOTA_GATE})"
    named: list[str] = []
    found: object = raw
    for part in parts[:5]:
        plain = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            if int(plain) >= len(found):
                break
            found = found[int(plain)]
            name = found.get("name") if isinstance(found, Mapping) else None
            named.append(f"[{name or plain}]")
        else:
            found = found.get(plain) if isinstance(found, Mapping) else None
            named.append(f".{plain}")
    return "".join(named).lstrip(".")
