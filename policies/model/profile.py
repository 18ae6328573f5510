# SPDX-License-Identifier: Apache-2.0
"""Sharing profiles: the forms in which a GPU can be had."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from policies.model.labels import Expression


class SharingMode(StrEnum):
    """How a GPU is shared; vGPU and DRA are to come."""

    EXCLUSIVE = "Exclusive"
    MIG = "MIG"
    TIME_SLICE = "TimeSlice"
    MPS = "MPS"


class Strength(StrEnum):
    """How hard a form's memory limit is."""

    HARDWARE = "Hardware"
    PROCESS = "Process"
    COOPERATIVE = "Cooperative"
    NONE = "None"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration as Kubernetes writes it; None leaves the field out."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return it with only the fields that are set."""
        fields = {
            "key": self.key,
            "operator": self.operator,
            "value": self.value,
            "effect": self.effect,
            "tolerationSeconds": self.toleration_seconds,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Placement:
    """What a pod of this form needs of its node: labels, required affinity, tolerations.

    The last two are also kept as they stand in a pod, since every pod of the form gets them.
    """

    node_selector: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Expression, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    expressions_json: tuple[Mapping[str, object], ...] = field(init=False, compare=False)
    tolerations_json: tuple[Mapping[str, object], ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        expressions = tuple(expression.to_json() for expression in self.expressions)
        tolerations = tuple(toleration.to_json() for toleration in self.tolerations)
        object.__setattr__(self, "expressions_json", expressions)
        object.__setattr__(self, "tolerations_json", tolerations)


@dataclass(frozen=True, slots=True)
class Charge:
    """What one unit costs: `numerator` of `denominator` equal parts of one GPU.

    Kept as a count of parts, so that a GPU's worth of shares never costs more than the GPU.
    """

    numerator: int
    denominator: int

    def milli(self, units: int) -> int:
        """Return the milli-GPU of so many units, rounded up once."""
        return -(-1000 * self.numerator * units // self.denominator)


class ShareWith(StrEnum):
    """Whose pods may sit on the same node's cards, in forms without a wall between them."""

    TENANT = "Tenant"
    COHORT = "Cohort"
    ANY = "Any"


class Limiter(StrEnum):
    """A library on the nodes that keeps containers to their memory."""

    HAMI_CORE = "HAMiCore"


@dataclass(frozen=True, slots=True)
class Profile:
    """Kind `SharingProfile`, compiled: everything derived from its mode is in it.

    `memory_mib` is the usable memory of one unit where all products agree, else the smallest;
    None where it is not known. `compute_percent` is the share of a GPU's compute. `shipped` tells
    a ready-made profile from a user's document.
    """

    name: str
    mode: SharingMode
    vendor: str
    resource: str
    charge: Charge
    placement: Placement
    strength: Strength
    products: tuple[str, ...] = ()
    replicas: int | None = None
    mig_profile: str | None = None
    memory_mib: int | None = None
    allow_multiple: bool = False
    share_with: ShareWith = ShareWith.ANY
    limiter: Limiter | None = None
    compute_percent: int = 100
    shipped: bool = False
