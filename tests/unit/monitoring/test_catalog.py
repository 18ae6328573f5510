# SPDX-License-Identifier: Apache-2.0
"""Every alert is complete and has its place in the documentation."""

import re
from pathlib import Path

import pytest
import yaml

from policies.telemetry.names import exporters
from policies.telemetry.quantities import Quantity
from reconciler.monitoring.catalog import GROUPS, alerts, records
from reconciler.monitoring.exporters import CARD, measured
from reconciler.monitoring.rules import RUNBOOK, Alert, rule_file

ROOT = Path(__file__).parents[3]
RUNBOOKS = (ROOT / RUNBOOK).read_text(encoding="utf-8")
ALERTS = tuple(alerts())


@pytest.mark.parametrize("alert", ALERTS, ids=[alert.name for alert in ALERTS])
def test_an_alert_tells_its_numbers_and_has_a_runbook(alert: Alert) -> None:
    section = re.search(
        rf"^### {alert.name}\n\n(.+?)(?=\n#|\Z)", RUNBOOKS, re.MULTILINE | re.DOTALL
    )
    assert section is not None, f"{RUNBOOK} has no section {alert.name}"
    assert re.fullmatch(r"\d+[mh]", alert.hold)
    has_number = "$value" in alert.summary + alert.description
    # Of what is or is not there is nothing to count.
    is_state = alert.name in {
        *("SluiceGone", "SluiceNoLeader", "SluiceExtenderGone", "SluiceDocumentsBroken"),
    }
    assert has_number is not is_state


def test_there_is_no_runbook_of_an_alert_that_is_gone() -> None:
    assert re.findall(r"^### (\w+)$", RUNBOOKS, re.MULTILINE) == [each.name for each in ALERTS]


def test_names_are_given_once() -> None:
    names = [*(each.name for each in ALERTS), *(each.name for each in records())]
    assert len(names) == len(set(names))
    assert len({group.name for group in GROUPS}) == len(GROUPS)


def test_every_level_has_records_or_alerts_of_its_own() -> None:
    assert {str(each.level) for each in ALERTS} == {
        *("card", "node", "model", "workload", "tenant", "sluice"),
    }
    assert {each.name.partition(":")[0] for each in records()} == {
        *("card", "node", "cluster", "model", "workload", "workload_card", "tenant", "sluice"),
    }


def test_the_file_in_the_tree_is_the_list() -> None:
    text = (ROOT / "manifests" / "alerts" / "sluice.rules.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text) == rule_file(GROUPS)


def test_every_metric_of_memory_in_use_is_in_its_rule() -> None:
    expr = measured(Quantity.MEMORY_USED, CARD)
    for each in exporters():
        for metric in each.metrics:
            assert (f"({metric.name} >=" in expr) == (metric.quantity is Quantity.MEMORY_USED)


def test_values_are_brought_to_one_unit_and_what_cannot_be_is_left_out() -> None:
    expr = measured(Quantity.TEMPERATURE, ("node", "card"))
    assert "(DCGM_FI_DEV_GPU_TEMP >= -50 <= 200)" in expr
    expr = measured(Quantity.UTILISATION)
    assert '(DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=""} >= 0 <= 101)' in expr
    assert expr.count(") / 100") == expr.count(" <= 101)")
