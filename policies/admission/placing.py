# SPDX-License-Identifier: Apache-2.0
"""One placement for all grants of a pod, which runs on one node."""

from collections.abc import Iterable, Iterator, Mapping

from policies.admission.grant import Grant
from policies.model.decision import Violation
from policies.model.labels import Expression, Operator
from policies.model.profile import Placement, Toleration
from policies.model.reasons import Reason


def place(
    grants: tuple[Grant, ...], own_selector: Mapping[str, str]
) -> tuple[Placement, tuple[Violation, ...]]:
    """Join the placements of all grants, and say where they or the pod's own exclude each other."""
    joined, mixed = _join(grants)
    conflicts = (_conflict(grants, need) for need in _unmet(joined, own_selector))
    return joined, (*(_mixed(grants, key) for key in mixed), *conflicts)


def _join(grants: tuple[Grant, ...]) -> tuple[Placement, Iterable[str]]:
    """Return what all need together, and the labels in which they cannot be met."""
    if grants and all(grant.profile is grants[0].profile for grant in grants):
        return grants[0].profile.placement, ()
    selector: dict[str, str] = {}
    expressions: dict[Expression, None] = {}
    tolerations: dict[Toleration, None] = {}
    mixed: dict[str, None] = {}
    for grant in grants:
        placement = grant.profile.placement
        for key, value in placement.node_selector.items():
            if selector.setdefault(key, value) != value:
                mixed[key] = None
        expressions |= dict.fromkeys(placement.expressions)
        tolerations |= dict.fromkeys(placement.tolerations)
    mixed |= dict.fromkeys(_disjoint(expressions))
    return Placement(selector, tuple(expressions), tuple(tolerations)), mixed


def _disjoint(expressions: Iterable[Expression]) -> Iterator[str]:
    """Yield the labels that would need two values at once."""
    values: dict[str, set[str]] = {}
    for expression in expressions:
        if expression.operator is Operator.IN:
            allowed = values.setdefault(expression.key, set(expression.values))
            allowed &= set(expression.values)
    yield from (key for key, allowed in values.items() if not allowed)


def _unmet(placement: Placement, own_selector: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each selector of the pod's own that excludes the nodes, as written and as needed."""
    for key, value in own_selector.items():
        written, needed = f"{key}={value}", placement.node_selector.get(key, value)
        if needed != value:
            yield written, f"{key}={needed}"
        for expression in placement.expressions:
            if expression.key == key and not expression.matches(own_selector):
                yield written, str(expression)


def _conflict(grants: tuple[Grant, ...], need: tuple[str, str]) -> Violation:
    written, needed = need
    return Violation(
        Reason.PLACEMENT_CONFLICT,
        f"nodeSelector {written} excludes the nodes of profile {_profiles(grants)}, "
        f"which need {needed}: take it out",
    )


def _mixed(grants: tuple[Grant, ...], key: str) -> Violation:
    return Violation(
        Reason.MIXED_FORMS,
        f"its containers ask for {_profiles(grants)}, which no node offers together "
        f"(they differ in {key}): use one form in a pod",
    )


def _profiles(grants: tuple[Grant, ...]) -> str:
    return " and ".join(dict.fromkeys(grant.profile.name for grant in grants))
