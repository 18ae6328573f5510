# SPDX-License-Identifier: Apache-2.0
"""Every query of the dashboard and of the rules, taken from the files that people install."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[3]
RULES: Final = ROOT / "manifests" / "alerts" / "sluice.rules.yaml"
DASHBOARD: Final = ROOT / "manifests" / "dashboards" / "sluice.json"

EVERYTHING: Final = {"tenant": ".*", "model": ".*"}
"""What Grafana puts in the place of a variable that stands at All."""
_LABEL_VALUES: Final = re.compile(r"label_values\((?P<metric>[\w:]+), (?P<label>\w+)\)")
_VARIABLE: Final = re.compile(r"\$\w+")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """A query of a panel."""

    panel: str
    expr: str

    def with_values(self, values: Mapping[str, str], rate_interval: str) -> str:
        """Return it as Grafana sends it."""
        known = {**values, "__rate_interval": rate_interval}
        return _VARIABLE.sub(lambda match: known[match[0][1:]], self.expr)


def dashboard() -> Json:
    found: Json = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


def shown() -> Iterator[Shown]:
    """Yield every query of every panel."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield Shown(panel["title"], target["expr"])


def choices() -> Iterator[tuple[str, str, str]]:
    """Yield the name, metric and label of every variable that is asked of Prometheus."""
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            found = _LABEL_VALUES.fullmatch(variable["query"])
            assert found is not None, variable["query"]
            yield variable["name"], found["metric"], found["label"]


def rules() -> Iterator[Json]:
    """Yield every rule."""
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        yield from group["rules"]
