# SPDX-License-Identifier: Apache-2.0
"""Required node affinity: its terms as values, how they match, and how they are read.

Terms are ORed. A term that is empty or that kube-scheduler could not parse matches nothing.
Source: kubernetes component-helpers scheduling/corev1/nodeaffinity.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.cluster.nodes import Node
from policies.cluster.reading import mappings, text
from policies.model.labels import Expression, Operator

NAME_FIELD: Final = "metadata.name"
"""The one field of nodes that matchFields may name."""

NO_NODE: Final[tuple["NodeTerm", ...]] = ()
"""No term at all: matches no node."""

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_MAX_INT64: Final = 2**63 - 1


class _UnreadableError(Exception):
    """A term that kube-scheduler could not parse either."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A label must be a whole number above `bound`, or below it; `operator` is Gt or Lt."""

    key: str
    operator: str
    bound: int

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the label is there, a number, and on the right side of the bound."""
        number = _whole_number(labels.get(self.key, ""))
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else number < self.bound


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of required node affinity: all of its expressions must hold."""

    expressions: tuple[Expression | Threshold, ...] = ()
    fields: tuple[Expression, ...] = ()

    def unmet(self, node: Node) -> str | None:
        """Return the key of the first requirement that the node does not meet; None if none."""
        for expression in self.expressions:
            if not expression.matches(node.labels):
                return expression.key
        if self.fields:
            named = {NAME_FIELD: node.name}
            return next((field.key for field in self.fields if not field.matches(named)), None)
        return None


def read_terms(affinity: object) -> tuple[NodeTerm, ...] | None:
    """Return the terms of a pod's `affinity`; None where it requires nothing of nodes."""
    for field in ("nodeAffinity", _REQUIRED):
        if affinity is None:
            return None
        if not isinstance(affinity, dict):
            return NO_NODE
        affinity = affinity.get(field)
    if affinity is None:
        return None
    if not isinstance(affinity, dict):
        return NO_NODE
    found = (_term(raw) for raw in mappings(affinity, "nodeSelectorTerms"))
    return tuple(term for term in found if term is not None)


def _term(raw: Mapping[str, object]) -> NodeTerm | None:
    """Return the term; None if it is empty or unreadable, for neither matches any node."""
    try:
        expressions = tuple(_expression(item) for item in _objects(raw, "matchExpressions"))
        fields = tuple(_field(item) for item in _objects(raw, "matchFields"))
    except _UnreadableError:
        return None
    return NodeTerm(expressions, fields) if expressions or fields else None


def _expression(raw: Mapping[str, object]) -> Expression | Threshold:
    key, values = text(raw, "key"), _values(raw)
    if not key or not all(map(_LABEL_VALUE.fullmatch, values)):
        raise _UnreadableError
    match raw.get("operator"):
        case "In" | "NotIn" if values:
            return Expression(key, Operator(text(raw, "operator")), values)
        case "Exists" | "DoesNotExist" if not values:
            return Expression(key, Operator(text(raw, "operator")))
        case "Gt" | "Lt" if len(values) == 1 and (bound := _whole_number(values[0])) is not None:
            return Threshold(key, text(raw, "operator"), bound)
    raise _UnreadableError


def _field(raw: Mapping[str, object]) -> Expression:
    values = _values(raw)
    if raw.get("operator") not in ("In", "NotIn") or raw.get("key") != NAME_FIELD:
        raise _UnreadableError
    if len(values) != 1:
        raise _UnreadableError
    return Expression(NAME_FIELD, Operator(text(raw, "operator")), values)


def _objects(raw: Mapping[str, object], field: str) -> list[Mapping[str, object]]:
    values = raw.get(field)
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(item, Mapping) for item in values):
        raise _UnreadableError
    return values


def _values(raw: Mapping[str, object]) -> tuple[str, ...]:
    values = raw.get("values")
    if values is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _UnreadableError
    return tuple(map(sys.intern, values))


def _whole_number(value: str) -> int | None:
    """Return the int64 that a label value is; None for any other text.

    A label value cannot begin with a sign, so there are no negative ones.
    """
    if not (value.isascii() and value.isdecimal()):
        return None
    digits = value.lstrip("0") or "0"
    number = int(digits) if len(digits) <= len(str(_MAX_INT64)) else _MAX_INT64 + 1
    return number if number <= _MAX_INT64 else None
