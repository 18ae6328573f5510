# SPDX-License-Identifier: Apache-2.0
"""From raw PodDisruptionBudgets to what is kept of them. Pure; never raises, whatever is in one.

What cannot be read protects its pods: it is taken for a budget that never allows anything.
"""

from collections.abc import Mapping
from typing import Final

from policies.model.labels import Expression, LabelSelector, Operator
from policies.quota.pdb import Percent, PodDisruptionBudget
from reconciler.kube import raw
from reconciler.kube.resources import POD_DISRUPTION_BUDGETS, Selection

PDBS: Final = Selection(POD_DISRUPTION_BUDGETS)

_SYNC_FAILED: Final = "SyncFailed"
"""Reason of the condition of a budget whose pods have no controller that tells their number."""
_MOST_PERCENT: Final = 100


def budget_view(item: Mapping[str, object]) -> PodDisruptionBudget:
    """Return the view of a raw PodDisruptionBudget."""
    metadata, spec, status = (raw.mapping(item, part) for part in ("metadata", "spec", "status"))
    is_current = _count(status, "observedGeneration") >= _count(metadata, "generation")
    return PodDisruptionBudget(
        namespace=raw.text(metadata, "namespace"),
        name=raw.text(metadata, "name"),
        selector=_selector(spec.get("selector")),
        min_available=_amount(spec.get("minAvailable"), Percent(_MOST_PERCENT)),
        max_unavailable=_amount(spec.get("maxUnavailable"), 0),
        # The API server lets nothing go by a status that is older than the budget.
        disruptions_allowed=_count(status, "disruptionsAllowed") if is_current else 0,
        expected=_count(status, "expectedPods") if is_current else 0,
        is_stuck=is_current and _is_stuck(status),
    )


def _is_stuck(status: Mapping[str, object]) -> bool:
    return any(
        condition.get("type") == "DisruptionAllowed" and condition.get("reason") == _SYNC_FAILED
        for condition in raw.mappings(status, "conditions")
    )


def _amount(value: object, unreadable: int | Percent) -> int | Percent | None:
    """Return an IntOrString; for what is neither, what allows nothing."""
    if value is None:
        return None
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str) and value.endswith("%"):
        digits = value[:-1]
        if digits.isascii() and digits.isdecimal() and int(digits[:4]) <= _MOST_PERCENT:
            return Percent(int(digits))
    return unreadable


def _count(item: Mapping[str, object], field: str) -> int:
    value = item.get(field)
    return value if type(value) is int else 0


def _selector(value: object) -> LabelSelector | None:
    """Return the selector; None selects nothing, an empty one everything (policy/v1)."""
    if not isinstance(value, Mapping):
        return None
    equal = [
        Expression(key, Operator.IN, (label,))
        for key, label in raw.strings(value, "matchLabels").items()
    ]
    return LabelSelector((*equal, *map(_expression, raw.mappings(value, "matchExpressions"))))


def _expression(item: Mapping[str, object]) -> Expression:
    values = item.get("values")
    texts = tuple(v for v in values if isinstance(v, str)) if isinstance(values, list) else ()
    try:
        return Expression(raw.text(item, "key"), Operator(raw.text(item, "operator")), texts)
    except ValueError:
        # An operator of a later API: the budget is taken to cover every pod.
        return Expression(raw.text(item, "key"), Operator.NOT_IN, ())
