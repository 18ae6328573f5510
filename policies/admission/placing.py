# SPDX-License-Identifier: Apache-2.0
"""One placement for all grants of a pod, which runs on one node."""

from collections.abc import Mapping

from policies.admission.forms import Grant
from policies.model.decision import Violation
from policies.model.labels import Expression
from policies.model.profile import Placement, Toleration
from policies.model.reasons import Reason


def place(
    grants: tuple[Grant, ...], own_selector: Mapping[str, str]
) -> tuple[Placement, tuple[Violation, ...]]:
    """Join the placements of all grants, and say where they or the pod's own exclude each other."""
    selector: dict[str, str] = {}
    expressions: dict[Expression, None] = {}
    tolerations: dict[Toleration, None] = {}
    violations: list[Violation] = []
    for grant in grants:
        placement = grant.profile.placement
        for key, value in placement.node_selector.items():
            if selector.setdefault(key, value) != value:
                violations.append(_mixed(grants, key))
        expressions |= dict.fromkeys(placement.expressions)
        tolerations |= dict.fromkeys(placement.tolerations)
    for key, value in selector.items():
        if own_selector.get(key, value) != value:
            violations.append(
                Violation(
                    Reason.PLACEMENT_CONFLICT,
                    f"nodeSelector {key}={own_selector[key]} excludes the nodes of profile "
                    f"{_profiles(grants)}, which need {key}={value}: take it out",
                )
            )
    return Placement(selector, tuple(expressions), tuple(tolerations)), tuple(
        dict.fromkeys(violations)
    )


def _mixed(grants: tuple[Grant, ...], key: str) -> Violation:
    return Violation(
        Reason.MIXED_FORMS,
        f"its containers ask for {_profiles(grants)}, which no node offers together "
        f"(they differ in {key}): use one form in a pod",
    )


def _profiles(grants: tuple[Grant, ...]) -> str:
    return " and ".join(dict.fromkeys(grant.profile.name for grant in grants))
