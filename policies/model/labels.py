# SPDX-License-Identifier: Apache-2.0
"""Kubernetes label selectors as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Operator(StrEnum):
    """Operators that label selectors and node selector terms share."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


_CONTRARY: Final = {
    Operator.IN: Operator.NOT_IN,
    Operator.NOT_IN: Operator.IN,
    Operator.EXISTS: Operator.DOES_NOT_EXIST,
    Operator.DOES_NOT_EXIST: Operator.EXISTS,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """One requirement on a label; NotIn and DoesNotExist hold for an absent label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels meet the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None

    def contrary(self) -> "Expression":
        """Return the requirement that exactly the other labels meet."""
        return Expression(self.key, _CONTRARY[self.operator], self.values)

    def excludes(self, other: "Expression") -> bool:
        """Tell whether no labels meet both."""
        if self.key != other.key:
            return False
        for one, two in ((self, other), (other, self)):
            if one.operator is Operator.IN:
                return not any(two.matches({one.key: value}) for value in one.values)
        return {self.operator, other.operator} == {Operator.EXISTS, Operator.DOES_NOT_EXIST}

    def __str__(self) -> str:
        """Return it as kubectl writes selectors: `zone in (a,b)`, `!zone`."""
        match self.operator:
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {str(self.operator).lower()} ({','.join(self.values)})"
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"

    def to_json(self) -> dict[str, object]:
        """Return it as Kubernetes writes it in selectors and node affinity."""
        plain: dict[str, object] = {"key": self.key, "operator": str(self.operator)}
        if self.values:
            plain["values"] = list(self.values)
        return plain


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All expressions must match; an empty selector matches everything, as in Kubernetes."""

    expressions: tuple[Expression, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels meet every expression."""
        return all(expression.matches(labels) for expression in self.expressions)

    def excludes(self, other: "LabelSelector") -> bool:
        """Tell whether one requirement of each shows that no labels meet both."""
        return any(a.excludes(b) for a in self.expressions for b in other.expressions)
