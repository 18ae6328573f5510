# SPDX-License-Identifier: Apache-2.0
"""How much GPU memory a container states that one GPU must have, in MiB.

The first of annotation, variable, expression and default that says something counts. What is
stated but cannot be read refuses: to guess a need is to give the wrong share.
"""

from policies.admission.context import Context
from policies.admission.scopes import Scopes
from policies.cel import EvaluationError
from policies.model.decision import Violation
from policies.model.policy import Fit, Need, Policy
from policies.model.quantity import MEBI, QuantityError, parse_mib, parse_quantity
from policies.model.reasons import Reason
from policies.pod.reading import objects_at
from policies.pod.view import Container, PodView
from policies.vendors import Form

_ALL = 100

MAX_MIB = 64 * 1024 * 1024
"""64 TiB: more than a GPU will have; keeps absurd numbers out of arithmetic."""


class Needs:
    """What one pod states. Unless the policy says otherwise, its neediest container counts."""

    def __init__(self, context: Context, scopes: Scopes) -> None:
        self._context = context
        self._scopes = scopes
        self._found: dict[tuple[str, str, int], int | Violation] = {}

    def of(self, policy: Policy, fit: Fit, container: Container) -> int | Violation:
        """Return the need, in MiB, of each GPU of a container. Raises MalformedError."""
        own = self._stated(policy, fit, container)
        if fit.per_container or isinstance(own, Violation):
            return own
        others = [
            self._stated(policy, fit, asked.container)
            for asked in self._context.asked
            if any(name.form is Form.WHOLE for name in asked.names)
        ]
        # What another container fails to state is refused there.
        return max([own, *(need for need in others if isinstance(need, int))])

    def compute_percent(self, fit: Fit) -> int | Violation:
        """Return the percent of a GPU's compute that the pod states to need; 0 if it does not."""
        key = fit.compute_annotation
        text = self._context.pod.annotations.get(key, "") if key else ""
        if not text:
            return 0
        number = text.removesuffix("%").strip()
        if number.isascii() and number.isdecimal() and 0 < int(number) <= _ALL:
            return int(number)
        return Violation(
            Reason.INVALID_NEED, f"annotation {key}: {text[:32]!r} is no percentage from 1 to 100"
        )

    def _stated(self, policy: Policy, fit: Fit, container: Container) -> int | Violation:
        """Look into each container once, for every one asks what all the others need."""
        key = (policy.name, container.section, container.index)
        found = self._found.get(key)
        if found is None:
            pod = self._context.pod
            found = needed_mib(policy, fit.memory, pod, container, self._scopes)
            self._found[key] = found
        return found


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
    entries = [e for e in objects_at(container.raw, "env") if e.get("name") == name]
    if any(entry.get("valueFrom") is not None for entry in entries):
        return Violation(
            Reason.INVALID_NEED,
            f"{where} must have a plain value, since a share is chosen by it",
        )
    # Of several the last is what the program sees.
    value = entries[-1].get("value") if entries else None
    return _read(where, value) if value else None


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
