# SPDX-License-Identifier: Apache-2.0
"""The installed rules and dashboard on a real Prometheus that scrapes a real Sluice at work."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from certs.files import ensure
from certs.names import LOOPBACK
from policies.telemetry.names import exporters as known_exporters
from reconciler.manifests.telemetry import TelemetryOptions
from reconciler.runtime.metric_specs import METRICS, Kind
from tests.controlplane import ControlPlane
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.dcgm_replay import STEP_SECONDS, apply, load
from tests.controlplane.extender import ExtenderLaunch, ExtenderProcess
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.monitoring import PrometheusServer, Scraping
from tests.controlplane.ports import HOST
from tests.controlplane.replica import Launch
from tests.integration.monitoring.promql import Prometheus, Selector
from tests.integration.monitoring.queries import (
    EVERYTHING,
    RULES,
    choices,
    rules,
    shown,
)
from tests.integration.monitoring.scene import BORROWER, DOCUMENTS, NODE, OWNER, Scene

pytestmark = pytest.mark.timeout(240)

_SECONDS: Final = 120.0
_RATE: Final = "30s"
_CARDS: Final = 8
_PODS: Final = (("shown", "serve-0", "main"), ("shown", "serve-1", "main"))
_HOT: Final = f'ALERTS{{alertname="SluiceCardHot",node="{NODE}"}}'


@dataclass(frozen=True, slots=True)
class Live:
    """All of it at work."""

    prometheus: Prometheus
    scene: Scene
    exporter: DcgmExporter

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Go on with the work until something holds."""
        deadline = time.monotonic() + _SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"not within {_SECONDS} s: {what}"
            time.sleep(0.2)

    def have_numbers(self, queries: Iterable[str]) -> None:
        """Go on with the work until each query has found a number at some time."""
        missing = set(queries)
        deadline = time.monotonic() + _SECONDS
        while missing := {each for each in missing if not self.prometheus.has_number(each)}:
            assert time.monotonic() < deadline, "no data:\n" + "\n".join(sorted(missing))
            self.scene.go_on()


@pytest.fixture(scope="module")
def exporter() -> Iterator[DcgmExporter]:
    """The cards of a node, each at a moment of a day of inference pods, shared by two."""
    cards = [Card(f"GPU-{number}", pods=_PODS) for number in range(_CARDS)]
    for card, series in zip(cards, load(os.environ, cards=_CARDS, steps=400), strict=True):
        apply(card, series[len(series) // 2], STEP_SECONDS)
    with DcgmExporter(NODE, cards) as started:
        yield started


@pytest.fixture(scope="module")
def live(
    control_plane: ControlPlane,
    monitoring: Mapping[str, Path],
    exporter: DcgmExporter,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Live]:
    """Sluice as it is installed, an extender, and a Prometheus with the rules."""
    directory = tmp_path_factory.mktemp("live")
    policies, run = directory / "policies", directory / "run"
    for each in (policies, run):
        each.mkdir()
    (policies / "all.yaml").write_text(DOCUMENTS, encoding="utf-8")
    ensure(run / "certificates", LOOPBACK, datetime.now(UTC))
    targets = directory / "sluice.json"
    targets.write_text("[]", encoding="utf-8")
    scraping = Scraping(rules=(RULES,), further=_jobs(targets, run / "certificates" / "ca.crt"))
    with PrometheusServer(monitoring["prometheus"], scraping) as server:
        server.set_targets([exporter.address])
        telemetry = _telemetry(server)
        launch = ExtenderLaunch(
            ("--lease-name", "", "--prometheus-url", server.url), telemetry.environment, False
        )
        with (
            InstalledSluice(
                control_plane,
                policies,
                run,
                Launch(environment=telemetry.environment),
                telemetry=telemetry,
            ) as installed,
            ExtenderProcess(directory, launch) as extender,
        ):
            extender.start(control_plane.kubeconfig)
            found = [
                {"targets": [f"{HOST}:{installed.port}"]},
                {
                    "targets": [extender.url.removeprefix("http://")],
                    "labels": {"__scheme__": "http"},
                },
            ]
            targets.write_text(json.dumps(found), encoding="utf-8")
            scene = Scene(control_plane, extender)
            with scene.begun():
                yield Live(Prometheus(server.url), scene, exporter)


def _jobs(targets: Path, authority: Path) -> tuple[Mapping[str, object], ...]:
    job = {
        "job_name": "sluice",
        "scheme": "https",
        "tls_config": {"ca_file": str(authority)},
        "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
    }
    return (job,)


def _telemetry(server: PrometheusServer) -> TelemetryOptions:
    return TelemetryOptions(
        {
            "PROMETHEUS_URL": server.url,
            "SLUICE_SAMPLING_INFERENCE_SECONDS": "1",
            "SLUICE_SAMPLING_TRAINING_SECONDS": "1",
        }
    )


@pytest.mark.parametrize(
    "values",
    [EVERYTHING, {"tenant": f"{BORROWER}|{OWNER}", "model": "NVIDIA-H100-80GB-HBM3"}],
    ids=["all", "some tenants and one model"],
)
def test_every_query_of_the_dashboard_finds_data(live: Live, values: Mapping[str, str]) -> None:
    found = [query.with_values(values, _RATE) for query in shown()]
    assert len(found) > 50
    live.have_numbers(found)


def test_every_choice_of_the_dashboard_offers_something(live: Live) -> None:
    live.have_numbers(metric for _, metric, _ in choices())
    offered = {
        name: live.prometheus.label_values(metric, label) for name, metric, label in choices()
    }
    assert set(offered) == {"tenant", "model"}
    assert {BORROWER, OWNER} <= set(offered["tenant"])
    assert any("H100" in model for model in offered["model"])


def test_every_recorded_series_has_data(live: Live) -> None:
    live.have_numbers(rule["record"] for rule in rules() if "record" in rule)


def test_recorded_values_are_what_the_cards_do(live: Live) -> None:
    cards = {card.uuid: card for card in live.exporter.cards}

    def recorded(name: str) -> dict[str, float]:
        found = live.prometheus.query(f'{name}{{node="{NODE}"}}')
        return {each["metric"]["card"]: float(each["value"][1]) for each in found}

    def are_true() -> bool:
        busy = {uuid: pytest.approx(card.busy) for uuid, card in cards.items()}
        used = {uuid: pytest.approx(card.used_mib) for uuid, card in cards.items()}
        load = {
            uuid: pytest.approx(0.7 * card.busy + 0.3 * card.used_mib / card.total_mib)
            for uuid, card in cards.items()
        }
        return (
            recorded("card:sluice_utilisation:ratio") == busy
            and recorded("card:sluice_memory_used:mib") == used
            and recorded("card:sluice_load:ratio") == load
            and set(recorded("card:sluice_pods:count").values()) == {len(_PODS)}
        )

    live.until("what is recorded is what the cards do", are_true)


def test_every_rule_is_evaluated_without_an_error(live: Live) -> None:
    def all_done() -> bool:
        return all(rule["health"] != "unknown" for rule in live.prometheus.rules())

    live.until("every rule was evaluated", all_done)
    found = live.prometheus.rules()
    assert len(found) == len(list(rules()))
    assert {rule["name"]: rule.get("lastError") for rule in found if rule["health"] != "ok"} == {}


def test_every_selector_of_an_alert_selects_something(live: Live) -> None:
    """A label or a value that nobody writes would make an alert that never fires."""
    selectors = {each for rule in rules() if "alert" in rule for each in _selectors(live, rule)}
    assert len(selectors) > 30
    live.have_numbers(each.text for each in selectors)


def test_every_metric_in_use_is_one_that_is_known(live: Live) -> None:
    used = {each.name for rule in rules() for each in _selectors(live, rule)}
    for query in shown():
        expr = query.with_values(EVERYTHING, _RATE)
        used |= {each.name for each in live.prometheus.selectors(expr)}
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    told = {metric.name for each in known_exporters() for metric in each.metrics}
    assert used <= recorded | told | set(_served())


def test_a_card_that_is_hot_is_told_of_and_one_that_is_unknown_is_not(live: Live) -> None:
    card = live.exporter.cards[0]
    before = card.busy, card.used_mib
    card.busy, card.used_mib = 1.0, 70_000.0

    def is_told() -> bool:
        return bool(live.prometheus.query(_HOT))

    live.until("the hot card is told of", is_told)
    card.replaced["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] = "NaN"
    card.replaced["DCGM_FI_DEV_GPU_UTIL"] = "NaN"
    live.until("a card of unknown load is not told of", lambda: not is_told())
    card.replaced.clear()
    live.until("it is known again", is_told)
    live.exporter.stop()
    live.until("nor is one whose exporter is gone", lambda: not is_told())
    live.exporter.start()
    card.busy, card.used_mib = before
    live.until(
        "the exporter is back",
        lambda: bool(live.prometheus.query(f'node:sluice_cards:count{{node="{NODE}"}}')),
    )


def _selectors(live: Live, rule: Mapping[str, str]) -> set[Selector]:
    return live.prometheus.selectors(rule["expr"])


def _served() -> Iterator[str]:
    """Yield the series' names of each metric that Sluice serves."""
    for spec in METRICS:
        if spec.kind is Kind.HISTOGRAM:
            yield from (f"{spec.name}_{part}" for part in ("bucket", "count", "sum"))
        else:
            yield spec.name
