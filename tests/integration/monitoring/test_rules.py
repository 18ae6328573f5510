# SPDX-License-Identifier: Apache-2.0
"""Every alert fires when it must and at no other time, by Prometheus' own tool."""

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from reconciler.monitoring.catalog import GROUPS, alerts
from reconciler.monitoring.records import RECORDS
from reconciler.monitoring.rules import RUNBOOK, Group, Record, rule_file
from tests.integration.monitoring.cases.case import Case, Series
from tests.integration.monitoring.cases.catalog import CASES

ROOT: Final = Path(__file__).parents[3]
RULES: Final = ROOT / "manifests" / "alerts" / "sluice.rules.yaml"
_BY_NAME: Final = {alert.name: alert for alert in alerts()}
_GROUP_OF: Final = {rule.name: group for group in GROUPS for rule in group.rules}
_SECONDS: Final = 120

Json = dict[str, Any]

pytestmark = pytest.mark.timeout(2 * _SECONDS)


@pytest.fixture(scope="session")
def promtool(monitoring: Mapping[str, Path]) -> Path:
    return monitoring["promtool"]


def run(promtool: Path, *arguments: str) -> None:
    done = subprocess.run(
        [str(promtool), *arguments], capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


def fires(case: Case) -> Json:
    """Return what promtool is to find of a case that fires."""
    alert = _BY_NAME[case.alert]
    annotations = {
        "summary": case.summary,
        "description": case.description,
        "runbook": f"{RUNBOOK}#{alert.name.lower()}",
    }
    labels = {**case.labels, "severity": str(alert.severity), "level": str(alert.level)}
    expected = [{"exp_labels": labels, "exp_annotations": annotations}]
    return example(case.series, [asked(case, case.at, expected)], case.alert)


def quiet(case: Case, series: Series, *minutes: int) -> Json:
    """Return what promtool is to find of series of which an alert must not fire."""
    wanted = minutes or (case.at,)
    return example(series, [asked(case, minute, []) for minute in wanted], case.alert)


def asked(case: Case, minute: int, expected: list[Json]) -> Json:
    return {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": expected}


def example(series: Series, questions: list[Json], name: str) -> Json:
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": questions,
    }


def check(promtool: Path, directory: Path, examples: Iterable[Json]) -> None:
    """Have examples tested, those of each group of alerts with the rules that they go by."""
    found: dict[str, list[Json]] = defaultdict(list)
    for each in examples:
        for question in each["alert_rule_test"]:
            found[_GROUP_OF[question["alertname"]].name].append(
                {**each, "alert_rule_test": [question]}
            )
    for group in GROUPS:
        if group.name in found:
            rules, file = directory / f"{group.name}.rules.json", directory / f"{group.name}.json"
            rules.write_text(json.dumps(rule_file(needed(group))), encoding="utf-8")  # JSON is YAML
            content = {
                "rule_files": [str(rules)],
                "evaluation_interval": "1m",
                # A server gives each group a time of its own, so that values may be one round old.
                "group_eval_order": [each.name for each in needed(group)],
                "tests": found[group.name],
            }
            file.write_text(json.dumps(content), encoding="utf-8")
            run(promtool, "test", "rules", str(file))


def needed(group: Group) -> list[Group]:
    """Return a group and those of the recording rules that it uses, in their order."""
    kept, text = [group], str(group.to_object())
    for each in reversed(GROUPS[: GROUPS.index(group)]):
        if any(isinstance(rule, Record) and rule.name in text for rule in each.rules):
            kept.insert(0, each)
            text += str(each.to_object())
    return kept


def test_the_rules_are_rules(promtool: Path) -> None:
    run(promtool, "check", "rules", "--lint=all", "--lint-fatal", str(RULES))


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    assert {case.alert for case in CASES} == set(_BY_NAME)
    assert {case.alert for case in CASES if case.quiet} == set(_BY_NAME)


def test_an_alert_fires_with_its_numbers(promtool: Path, tmp_path: Path) -> None:
    check(promtool, tmp_path, map(fires, CASES))


def test_an_alert_does_not_fire_of_what_is_well(promtool: Path, tmp_path: Path) -> None:
    found = [quiet(case, series) for case in CASES for series in case.quiet]
    check(promtool, tmp_path, found)


def test_an_alert_does_not_fire_of_nan(promtool: Path, tmp_path: Path) -> None:
    found = []
    for case in CASES:
        series = dict.fromkeys(case.series, " ".join(["NaN"] * (case.at + 2)))
        found.append(quiet(case, series, case.at))
    check(promtool, tmp_path, found)


def test_an_alert_does_not_fire_of_nothing(promtool: Path, tmp_path: Path) -> None:
    waits = [asked(case, case.at, []) for case in CASES if case.alert != "SluiceGone"]
    check(promtool, tmp_path, [example({}, waits, "nothing")])


def test_an_alert_ends_with_the_series_that_it_is_of(promtool: Path, tmp_path: Path) -> None:
    """What is not scraped any more is unknown, whatever it was before."""
    found = []
    for case in CASES:
        if not case.recalls:
            series = {name: ended(values, case.at) for name, values in case.series.items()}
            found.append(quiet(case, series, case.at + 1))
    check(promtool, tmp_path, found)


def test_an_alert_waits_until_its_time_has_passed(promtool: Path, tmp_path: Path) -> None:
    check(promtool, tmp_path, (quiet(case, case.series, 0) for case in CASES))


_EXPORTERS: Final[Mapping[str, Series]] = {
    "dcgm": {
        'DCGM_FI_PROF_GR_ENGINE_ACTIVE{Hostname="n",UUID="c",gpu="0"}': "0.5",
        'DCGM_FI_DEV_FB_USED{Hostname="n",UUID="c",gpu="0"}': "1000",
        'DCGM_FI_DEV_FB_TOTAL{Hostname="n",UUID="c",gpu="0"}': "4000",
        'DCGM_FI_DEV_GPU_TEMP{Hostname="n",UUID="c",gpu="0"}': "60",
        'DCGM_FI_DEV_POWER_USAGE{Hostname="n",UUID="c",gpu="0"}': "300",
    },
    "amd": {
        'gpu_gfx_activity{hostname="n",gpu_uuid="c",gpu_id="0"}': "50",
        'gpu_used_vram{hostname="n",gpu_uuid="c",gpu_id="0"}': "1000",
        'gpu_total_vram{hostname="n",gpu_uuid="c",gpu_id="0"}': "4000",
        'gpu_junction_temperature{hostname="n",gpu_uuid="c",gpu_id="0"}': "60",
        'gpu_package_power{hostname="n",gpu_uuid="c",gpu_id="0"}': "300",
    },
    "hami": {
        'hami_host_gpu_utilization_ratio{node="n",device_uuid="c",device_index="0"}': "50",
        'hami_host_gpu_memory_used_bytes{node="n",device_uuid="c",device_index="0"}': "1048576000",
        'hami_host_gpu_temperature_celsius{node="n",device_uuid="c",device_index="0"}': "60",
        'hami_host_gpu_power_usage_watts{node="n",device_uuid="c",device_index="0"}': "300",
    },
    "a MIG instance": {
        'DCGM_FI_PROF_GR_ENGINE_ACTIVE{Hostname="n",UUID="c",GPU_I_ID="7"}': "0.5",
        # Of the whole card; it means nothing for an instance.
        'DCGM_FI_DEV_GPU_UTIL{Hostname="n",UUID="c",GPU_I_ID="7"}': "99",
        'DCGM_FI_DEV_FB_USED{Hostname="n",UUID="c",GPU_I_ID="7"}': "1000",
        'DCGM_FI_DEV_FB_FREE{Hostname="n",UUID="c",GPU_I_ID="7"}': "3000",
    },
    "a card without a UUID": {
        'DCGM_FI_DEV_GPU_UTIL{node_name="n",gpu="c"}': "50",
        'DCGM_FI_DEV_FB_USED{node_name="n",gpu="c"}': "1000",
        'DCGM_FI_DEV_FB_FREE{node_name="n",gpu="c"}': "2000",
        'DCGM_FI_DEV_FB_RESERVED{node_name="n",gpu="c"}': "1000",
    },
}
_RECORDED: Final = {
    "card:sluice_utilisation:ratio": 0.5,
    "card:sluice_memory_used:mib": 1000,
    "card:sluice_memory_total:mib": 4000,
    "card:sluice_load:ratio": 0.425,
}
_HEAT: Final = {"card:sluice_temperature:celsius": 60, "card:sluice_power:watts": 300}


@pytest.mark.parametrize("exporter", _EXPORTERS)
def test_cards_of_every_exporter_have_the_same_names_and_units(
    promtool: Path, tmp_path: Path, exporter: str
) -> None:
    mig = ',mig="7"' if exporter == "a MIG instance" else ""
    wanted = {f'{name}{{card="c",node="n"{mig}}}': each for name, each in _RECORDED.items()}
    if exporter in ("dcgm", "amd", "hami"):
        wanted |= {f'{name}{{card="c",node="n"}}': each for name, each in _HEAT.items()}
    if exporter == "hami":  # tells no total
        wanted = {k: v for k, v in wanted.items() if "total" not in k and "load" not in k}
    names = (*_RECORDED, *_HEAT)
    found = '{__name__=~"' + "|".join(names) + '"}'
    samples = [{"labels": series, "value": value} for series, value in wanted.items()]
    question = {"expr": found, "eval_time": "0m", "exp_samples": samples}
    rules, file = tmp_path / "rules.json", tmp_path / "examples.json"
    rules.write_text(json.dumps(rule_file(RECORDS)), encoding="utf-8")
    test = {**example(_EXPORTERS[exporter], [], exporter), "promql_expr_test": [question]}
    content = {
        "rule_files": [str(rules)],
        "group_eval_order": [each.name for each in RECORDS],
        "tests": [test],
    }
    file.write_text(json.dumps(content), encoding="utf-8")
    run(promtool, "test", "rules", str(file))


def ended(values: str, minute: int) -> str:
    """Return values of which none is left from a minute on."""
    step = re.fullmatch(r"(?P<first>[\d.]+)(?P<step>\+[\d.]+)?x\d+", values)
    if step is not None:
        return f"{step['first']}{step['step'] or ''}x{minute} stale"
    # Of several pieces the last is what lasts.
    *before, last = values.split()
    count = sum(int(piece.partition("x")[2] or 0) + 1 for piece in before)
    return " ".join([*before, f"{last.partition('x')[0]}x{minute - count}", "stale"])
