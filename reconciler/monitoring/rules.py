# SPDX-License-Identifier: Apache-2.0
"""What recording rules and alerts are, and how Prometheus writes them.

Which there are must not be here.
Source: prometheus.io/docs/prometheus/latest/configuration/{recording,alerting}_rules.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

Object = dict[str, object]

RUNBOOK: Final = "docs/alerts.md"
"""The page with a section for each alert."""


class Severity(StrEnum):
    """Who is called: somebody at once, somebody in working hours, nobody."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Level(StrEnum):
    """What an alert is about; the label `level`, to route by."""

    CARD = "card"
    NODE = "node"
    MODEL = "model"
    WORKLOAD = "workload"
    TENANT = "tenant"
    SLUICE = "sluice"


@dataclass(frozen=True, slots=True)
class Record:
    """A series that Prometheus computes: `level:metric:unit`."""

    name: str
    expr: str
    meaning: str

    def to_object(self) -> Object:
        """Return it as a rule file has it."""
        return {"record": self.name, "expr": self.expr}


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition that somebody should know of once it has held for `hold` (`5m`).

    `summary` and `description` are templates of Prometheus, with the labels and the value.
    """

    name: str
    level: Level
    severity: Severity
    hold: str
    expr: str
    summary: str
    description: str

    def to_object(self) -> Object:
        """Return it as a rule file has it."""
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.hold,
            "labels": {"severity": str(self.severity), "level": str(self.level)},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook": f"{RUNBOOK}#{self.name.lower()}",
            },
        }


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated one after the other, so that later ones may use earlier ones."""

    name: str
    rules: tuple[Record | Alert, ...]

    def to_object(self) -> Object:
        """Return it as a rule file has it."""
        return {"name": self.name, "rules": [rule.to_object() for rule in self.rules]}


def rule_file(groups: Iterable[Group]) -> Object:
    """Return what `rule_files` of Prometheus name; also the `spec` of a PrometheusRule."""
    return {"groups": [group.to_object() for group in groups]}
