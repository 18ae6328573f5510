# SPDX-License-Identifier: Apache-2.0
"""GPU policies: which pods get which form, and what is checked."""

from dataclasses import dataclass
from enum import StrEnum

from policies.cel import Expression
from policies.model.labels import LabelSelector
from policies.model.profile import Strength


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
class Need:
    """Where the memory that one GPU must have is stated: the first of these that says something.

    `annotation` of the pod, `env` of the container, `expression` (MiB, or a quantity as text),
    `default_mib`. None of a field: not looked at.
    """

    annotation: str | None = None
    env: str | None = None
    expression: Expression | None = None
    default_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """Rewrite to the cheapest candidate that covers the need of each GPU.

    `compute_annotation` names the annotation that may state a share of a GPU's compute in percent.
    Without `per_container` all GPU containers of a pod get the form of the neediest.
    """

    memory: Need
    candidates: tuple[str, ...]
    compute_annotation: str | None = None
    per_container: bool = False


class UserValue(StrEnum):
    """What becomes of a limit that the user has set by the variable that Sluice writes."""

    REFUSE = "Refuse"
    OVERRIDE = "Override"


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Write the limit that a form's mode obeys: the fit's need, or a fixed size per GPU.

    `minimum_strength` drops candidates whose limit is weaker; `processes_annotation` names the
    annotation in which a pod says how many processes share its limit (MPS limits each process).
    """

    from_fit: bool = False
    value_mib: int | None = None
    minimum_strength: Strength = Strength.NONE
    user_value: UserValue = UserValue.REFUSE
    processes_annotation: str = "sluice.dev/gpu-processes"


@dataclass(frozen=True, slots=True)
class Policy:
    """Kind `GPUPolicy`, compiled. It rewrites to `profile`, or to what `fit` finds, or not."""

    name: str
    order: int
    match: Match
    variables: tuple[NamedExpression, ...] = ()
    profile: str | None = None
    fit: Fit | None = None
    memory_limit: MemoryLimit | None = None
    exclusive: bool = False
    validate: tuple[Validation, ...] = ()
    enforcement: Enforcement = Enforcement.ENFORCE
    description: str = ""
