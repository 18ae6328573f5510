# SPDX-License-Identifier: Apache-2.0
"""GPU policies: which pods get which form, and what is checked."""

from dataclasses import dataclass
from enum import StrEnum

from policies.cel import Expression
from policies.model.labels import LabelSelector


class Enforcement(StrEnum):
    """What a violation does."""

    ENFORCE = "Enforce"
    WARN = "Warn"
    AUDIT = "Audit"


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A condition or a variable."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Validation:
    """A CEL rule that must hold; the message says what to change if it does not."""

    name: str
    expression: Expression
    message: str | None = None
    message_expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """Which pods a policy speaks of; None means that this aspect does not matter."""

    tenants: frozenset[str] | None = None
    namespaces: frozenset[str] | None = None
    labels: LabelSelector | None = None
    owner_kinds: frozenset[str] | None = None
    when: tuple[NamedExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Kind `GPUPolicy`, compiled. `profile` is the form it rewrites to, or None."""

    name: str
    order: int
    match: Match
    variables: tuple[NamedExpression, ...] = ()
    profile: str | None = None
    exclusive: bool = False
    validate: tuple[Validation, ...] = ()
    enforcement: Enforcement = Enforcement.ENFORCE
    description: str = ""
