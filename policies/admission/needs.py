# SPDX-License-Identifier: Apache-2.0
"""How much GPU memory a container states that one GPU must have, in MiB.

The first of annotation, variable, expression and default that says something counts. What is
stated but cannot be read refuses: to guess a need is to give the wrong share.
"""

from policies.admission.scopes import Scopes
from policies.cel import EvaluationError
from policies.model.decision import Violation
from policies.model.policy import Need, Policy
from policies.model.quantity import MEBI, QuantityError, parse_mib, parse_quantity
from policies.model.reasons import Reason
from policies.pod.reading import objects_at
from policies.pod.view import Container, PodView

MAX_MIB = 64 * 1024 * 1024
"""64 TiB: more than a GPU will have; keeps absurd numbers out of arithmetic."""


def needed_mib(
    policy: Policy, need: Need, pod: PodView, container: Container, scopes: Scopes
) -> int | Violation:
    """Return the need of each GPU of a container. Raises MalformedError."""
    if need.annotation is not None and (text := pod.annotations.get(need.annotation)):
        return _read(f"annotation {need.annotation}", text)
    if need.env is not None:
        stated = _variable(need.env, container)
        if stated is not None:
            return stated
    if need.expression is not None:
        computed = _computed(policy, need, scopes)
        if computed is not None:
            return computed
    if need.default_mib is not None:
        return need.default_mib
    return Violation(Reason.INVALID_NEED, f"container {container.name}: {_ask(policy, need)}")


def _variable(name: str, container: Container) -> int | Violation | None:
    where = f"container {container.name}: variable {name}"
    for entry in objects_at(container.raw, "env"):
        if entry.get("name") != name:
            continue
        if entry.get("valueFrom") is not None:
            return Violation(
                Reason.INVALID_NEED,
                f"{where} must have a plain value, since a share is chosen by it",
            )
        if value := entry.get("value"):
            return _read(where, value)
    return None


def _computed(policy: Policy, need: Need, scopes: Scopes) -> int | Violation | None:
    if need.expression is None:
        return None
    where = f"policy {policy.name}: rewrite.fit.memory.expression"
    try:
        value = need.expression.evaluate(scopes.asked())
    except EvaluationError as error:
        return Violation(Reason.POLICY_ERROR, f"{where} could not be evaluated: {error}")
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return _bounded(where, value)
    return _read(where, value)


def _read(where: str, value: object) -> int | Violation:
    """Read a quantity as Kubernetes writes memory; a bare number is bytes, as it is there."""
    try:
        if parse_quantity(value) < MEBI:
            return Violation(
                Reason.INVALID_NEED,
                f"{where}: {str(value)[:32]!r} is less than 1 MiB; write a unit, such as 8Gi",
            )
        return _bounded(where, parse_mib(value))
    except QuantityError as error:
        return Violation(Reason.INVALID_NEED, f"{where}: {error}; write it as 8Gi or 8192Mi")


def _bounded(where: str, mib: int) -> int | Violation:
    if 0 < mib <= MAX_MIB:
        return mib
    return Violation(Reason.INVALID_NEED, f"{where}: {mib} MiB is no size of a GPU's memory")


def _ask(policy: Policy, need: Need) -> str:
    ways = [f"annotation {need.annotation}"] if need.annotation else []
    ways += [f"variable {need.env}"] if need.env else []
    by = " or ".join(ways) if ways else f"what policy {policy.name} looks at"
    return f"it does not state how much GPU memory it needs: set {by}, such as 8Gi"
