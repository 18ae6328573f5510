# SPDX-License-Identifier: Apache-2.0
"""Tolerations: which taints they cover, and how they are read.

Source: kubernetes api core/v1/toleration.go. The comparisons Gt and Lt, which are off by default,
cover nothing.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias, TypeGuard

from policies.cluster.nodes import Taint
from policies.cluster.reading import mappings
from policies.model.profile import Toleration

_Fields: TypeAlias = tuple[str, str, str, str]
"""Key, operator, value and effect; empty where there is none."""


def tolerates(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    """Tell whether any of the tolerations covers the taint."""
    for toleration in tolerations:  # noqa: SIM110 - a generator costs more than the answer
        if _covers(toleration, taint):
            return True
    return False


def read_tolerations(spec: Mapping[str, object]) -> tuple[Toleration, ...]:
    """Return those of a pod's spec, without doubles, in one order, and without their seconds.

    Neither makes a difference to where a pod may go, and alike pods should be one shape. An
    unreadable one tolerates nothing.
    """
    found: set[_Fields] = set()
    for raw in mappings(spec, "tolerations"):
        key, operator = raw.get("key"), raw.get("operator")
        value, effect = raw.get("value"), raw.get("effect")
        if _is_text(key) and _is_text(operator) and _is_text(value) and _is_text(effect):
            found.add((key or "", operator or "", value or "", effect or ""))
    return tuple([_shared(fields) for fields in sorted(found)])


def _is_text(value: object) -> TypeGuard[str | None]:
    return value is None or isinstance(value, str)


@lru_cache(maxsize=1024)  # nearly all pods have the same few
def _shared(fields: _Fields) -> Toleration:
    key, operator, value, effect = fields
    return Toleration(key or None, operator or None, value or None, effect or None)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return (toleration.operator or "Equal") == "Equal" and (toleration.value or "") == taint.value
