# SPDX-License-Identifier: Apache-2.0
"""Which policies speak of a pod, and what their validations say of it."""

from dataclasses import dataclass

from policies.admission.context import Context
from policies.admission.exempting import exemption_of
from policies.admission.scopes import Scopes
from policies.cel import EvaluationError
from policies.model.decision import Violation
from policies.model.exemption import Exemption
from policies.model.policy import Policy, Validation
from policies.model.reasons import Reason


@dataclass(frozen=True, slots=True)
class Matched:
    """The policies that match, in order; violations for those of which it cannot be told.

    `spared` are the policies that matched but for an exemption, with it.
    """

    policies: tuple[Policy, ...]
    errors: tuple[Violation, ...]
    spared: tuple[tuple[Policy, Exemption], ...]


def matching(context: Context, scopes: Scopes) -> Matched:
    """Find which policies speak of the pod."""
    matched: list[Policy] = []
    errors: list[Violation] = []
    spared: list[tuple[Policy, Exemption]] = []
    for policy in context.policies.policies_of(context.tenant):
        if not _speaks_of(policy, context):
            continue
        holds = _conditions_hold(policy, scopes)
        exemption = exemption_of(context, policy) if holds else None
        if exemption is not None:
            spared.append((policy, exemption))
        elif isinstance(holds, Violation):
            errors.append(holds)
        elif holds:
            matched.append(policy)
    return Matched(tuple(matched), tuple(errors), tuple(spared))


def validate(policy: Policy, scopes: Scopes) -> tuple[Violation, ...]:
    """Return a violation for each rule of the policy that does not hold or has no value."""
    found = (_judge(policy, rule, scopes) for rule in policy.validate)
    return tuple(violation for violation in found if violation is not None)


def _speaks_of(policy: Policy, context: Context) -> bool:
    match = policy.match
    return (
        (match.namespaces is None or context.request.namespace in match.namespaces)
        and (match.labels is None or match.labels.matches(context.pod.labels))
        and (match.owner_kinds is None or context.pod.owner_kind in match.owner_kinds)
    )


def _conditions_hold(policy: Policy, scopes: Scopes) -> bool | Violation:
    for condition in policy.match.when:
        try:
            if condition.expression.evaluate(scopes.asked()) is not True:
                return False
        except EvaluationError as error:
            return _unanswered(policy, f"when {condition.name}", error)
    return True


def _judge(policy: Policy, rule: Validation, scopes: Scopes) -> Violation | None:
    try:
        if rule.expression.evaluate(scopes.given(rule.expression)) is True:
            return None
    except EvaluationError as error:
        return _unanswered(policy, f"validate {rule.name}", error)
    return Violation(
        Reason.POLICY_VIOLATION,
        f"{policy.name}/{rule.name}: {_message(rule, scopes)}",
        policy.name,
        policy.enforcement,
    )


def _message(rule: Validation, scopes: Scopes) -> str:
    """Return the computed message, as Kubernetes does: the fixed one where it has no text."""
    message = rule.message_expression
    if message is not None:
        try:
            text = message.evaluate(scopes.given(message))
        except EvaluationError:
            text = ""
        if isinstance(text, str) and text.strip() and "\n" not in text:
            return text
    return rule.message or f"failed expression: {' '.join(rule.expression.source.split())}"


def _unanswered(policy: Policy, where: str, error: EvaluationError) -> Violation:
    return Violation(
        Reason.POLICY_ERROR,
        f"{policy.name}/{where} could not be evaluated: {error}",
        policy.name,
        policy.enforcement,
    )
