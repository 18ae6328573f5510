# SPDX-License-Identifier: Apache-2.0
"""The answer: what was decided, why, and what changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from policies.model.policy import Enforcement
from policies.model.reasons import Reason


class Verdict(StrEnum):
    """Whether the object may be stored."""

    ALLOWED = "Allowed"
    DENIED = "Denied"


@dataclass(frozen=True, slots=True)
class Violation:
    """One failed check. The message names container, resource and number, and what to change.

    `passing` tells that it lifts by itself, as when others end.
    """

    reason: Reason
    message: str
    policy: str | None = None
    enforcement: Enforcement = Enforcement.ENFORCE
    passing: bool = False

    def __str__(self) -> str:
        return f"[{self.reason}] {self.message}"


@dataclass(frozen=True, slots=True)
class Decision:
    """Everything that the answer to the API server, the audit log and the CLI are made from.

    `patch` is RFC 6902 operations, empty where nothing changes. `matched` are the policies that
    matched, in order; `policy` the one that rewrote. `asked` and `given` are the pod's effective
    GPU request by resource name before and after; `charge_milli` and `memory_mib` what it will cost
    the tenant, None of memory where no table tells it.
    `touches_gpus` is False for an object that Sluice has no say in.
    """

    verdict: Verdict
    generation: str
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, object], ...] = ()
    tenant: str | None = None
    policy: str | None = None
    profile: str | None = None
    exclusive: bool = False
    matched: tuple[str, ...] = ()
    asked: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=dict)
    charge_milli: int | None = None
    strength: str | None = None
    memory_mib: int | None = None
    touches_gpus: bool = False
    stale_seconds: int | None = None

    @property
    def allowed(self) -> bool:
        """Tell whether the object may be stored."""
        return self.verdict is Verdict.ALLOWED

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return the distinct reasons of all violations, in order."""
        return tuple(dict.fromkeys(violation.reason for violation in self.violations))

    @property
    def message(self) -> str:
        """Return one line with every enforced violation, as kubectl shows it; empty if allowed."""
        denied = [str(v) for v in self.violations if v.enforcement is Enforcement.ENFORCE]
        return f"sluice: {'; '.join(denied)}" if denied and not self.allowed else ""
