# SPDX-License-Identifier: Apache-2.0
"""Tolerations: which taints they cover, and how they are read.

Source: kubernetes api core/v1/toleration.go. The comparisons Gt and Lt, which are off by default,
cover nothing.
"""

from collections.abc import Mapping

from policies.cluster.nodes import Taint
from policies.cluster.reading import mappings, text
from policies.model.profile import Toleration


def tolerates(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    """Tell whether any of the tolerations covers the taint."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def read_tolerations(spec: Mapping[str, object]) -> tuple[Toleration, ...]:
    """Return those of a pod's spec, without doubles, in one order, and without their seconds.

    Neither makes a difference to where a pod may go, and alike pods should be one shape. An
    unreadable one tolerates nothing.
    """
    found = {
        (text(raw, "key"), text(raw, "operator"), text(raw, "value"), text(raw, "effect"))
        for raw in mappings(spec, "tolerations")
        if all(
            raw.get(field) is None or isinstance(raw.get(field), str)
            for field in ("key", "operator", "value", "effect")
        )
    }
    return tuple(
        Toleration(key or None, operator or None, value or None, effect or None)
        for key, operator, value, effect in sorted(found)
    )


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Equal":
            return (toleration.value or "") == taint.value
        case operator:
            return operator == "Exists"
