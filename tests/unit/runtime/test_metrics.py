# SPDX-License-Identifier: Apache-2.0
"""What is counted, and that nobody outside can add series."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from policies.model.decision import Decision, Verdict, Violation
from policies.model.policy import Enforcement
from policies.model.reasons import Reason
from policies.model.request import Operation, Phase, Request, User
from policies.model.settings import Mode
from reconciler.kube.errors import SilenceError, error_names
from reconciler.runtime.audit import DropCause
from reconciler.runtime.metric_specs import METRICS, Kind
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.metrics_reference import render
from webhook.failure import Cause

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "metrics.md"
COMMAND = "python -m reconciler.runtime.metrics_reference > docs/reference/metrics.md"

REQUEST = Request(
    phase=Phase.MUTATE,
    operation=Operation.CREATE,
    group="",
    resource="pods",
    subresource="",
    namespace="chat",
    name="llm",
    user=User("jane"),
    object={},
    old_object=None,
)
ALLOWED = Decision(Verdict.ALLOWED, "7c1f")
REWRITTEN = replace(ALLOWED, policy="p", profile="slice-4", patch=({"op": "remove", "path": "/x"},))
DENIED = replace(
    ALLOWED,
    verdict=Verdict.DENIED,
    violations=(
        Violation(Reason.HOST_ACCESS, "warned", "p", Enforcement.WARN),
        Violation(Reason.NO_TENANT, "denied"),
        Violation(Reason.NODE_NAME, "denied too"),
    ),
)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, labels) or 0.0


def series(metrics: Metrics, name: str) -> list[dict[str, str]]:
    """Return the labels of every series of a counter."""
    found = metrics.registry.collect()
    samples = [sample for family in found for sample in family.samples]
    return [sample.labels for sample in samples if sample.name == name]


@pytest.mark.parametrize(
    ("request_", "decision", "mode", "labels"),
    [
        (REQUEST, ALLOWED, Mode.ENFORCE, {}),
        (replace(REQUEST, phase=Phase.VALIDATE), ALLOWED, Mode.ENFORCE, {"phase": "Validate"}),
        (replace(REQUEST, dry_run=True), ALLOWED, Mode.ENFORCE, {"dry_run": "true"}),
        (REQUEST, DENIED, Mode.ENFORCE, {"verdict": "Denied", "reason": "NoTenant"}),
        (REQUEST, DENIED, Mode.OBSERVE,
         {"verdict": "Denied", "reason": "NoTenant", "mode": "Observe"}),
        (replace(REQUEST, subresource="resize"), ALLOWED, Mode.ENFORCE,
         {"resource": "pods/resize"}),
        (replace(REQUEST, group="apps", resource="deployments"), ALLOWED, Mode.ENFORCE,
         {"resource": "deployments"}),
        (replace(REQUEST, resource="rayclusters"), ALLOWED, Mode.ENFORCE, {"resource": "other"}),
    ],
)  # fmt: skip
def test_a_review_counts_under_what_was_decided(
    metrics: Metrics, request_: Request, decision: Decision, mode: Mode, labels: dict[str, str]
) -> None:
    base = {
        "phase": "Mutate",
        "resource": "pods",
        "verdict": "Allowed",
        "reason": "",
        "dry_run": "false",
        "mode": "Enforce",
    }
    for _ in range(2):
        metrics.reviewed(request_, decision, mode, 0.0003)
    assert series(metrics, "sluice_reviews_total") == [base | labels]
    assert value(metrics, "sluice_reviews_total", **(base | labels)) == 2
    phase = str(request_.phase)
    assert value(metrics, "sluice_review_duration_seconds_count", phase=phase) == 2
    bucket = "sluice_review_duration_seconds_bucket"
    assert value(metrics, bucket, phase=phase, le="0.0002") == 0
    assert value(metrics, bucket, phase=phase, le="0.0005") == 2


def test_every_violation_counts_with_its_policy_and_what_it_did(metrics: Metrics) -> None:
    metrics.reviewed(REQUEST, DENIED, Mode.ENFORCE, 0.0)
    assert series(metrics, "sluice_violations_total") == [
        {"policy": "p", "reason": "HostAccess", "enforcement": "Warn"},
        {"policy": "", "reason": "NoTenant", "enforcement": "Enforce"},
        {"policy": "", "reason": "NodeName", "enforcement": "Enforce"},
    ]


def test_a_rewrite_counts_by_policy_and_profile(metrics: Metrics) -> None:
    metrics.reviewed(REQUEST, REWRITTEN, Mode.ENFORCE, 0.0)
    metrics.reviewed(REQUEST, replace(REWRITTEN, patch=()), Mode.ENFORCE, 0.0)
    metrics.reviewed(REQUEST, replace(REWRITTEN, policy=None), Mode.OBSERVE, 0.0)
    assert series(metrics, "sluice_rewrites_total") == [
        {"policy": "p", "profile": "slice-4", "mode": "Enforce"},
        {"policy": "", "profile": "slice-4", "mode": "Observe"},
    ]
    labels = {"policy": "p", "profile": "slice-4", "mode": "Enforce"}
    assert value(metrics, "sluice_rewrites_total", **labels) == 1


def test_made_up_resources_share_one_series(metrics: Metrics) -> None:
    for number in range(100):
        made_up = replace(
            REQUEST, resource=f"r{number}", subresource=f"s{number}", name=f"n{number}"
        )
        metrics.reviewed(replace(made_up, namespace=f"ns{number}"), ALLOWED, Mode.ENFORCE, 0.0)
    assert [each["resource"] for each in series(metrics, "sluice_reviews_total")] == ["other"]
    assert len(metrics._reviews) == 1


def test_only_the_generation_that_is_served_has_a_series(metrics: Metrics) -> None:
    metrics.policies_loaded("a", 1.0)
    metrics.policies_broken()
    assert value(metrics, "sluice_policy_set_broken") == 1
    assert series(metrics, "sluice_policy_set_info") == [{"generation": "a"}]
    metrics.policies_loaded("b", 2.0)
    assert series(metrics, "sluice_policy_set_info") == [{"generation": "b"}]
    assert value(metrics, "sluice_policy_set_loaded_timestamp_seconds") == 2.0
    assert value(metrics, "sluice_policy_set_broken") == 0
    assert value(metrics, "sluice_policy_set_load_failures_total") == 1


def test_the_rest_is_counted_where_it_says(metrics: Metrics) -> None:
    metrics.audit_written(3)
    metrics.audit_dropped(2, "QueueFull")
    metrics.call_refused(413)
    metrics.internal_error(Phase.VALIDATE, "Deadline")
    metrics.facts_age(12.0)
    metrics.tls_reloaded(succeeded=True)
    metrics.tls_reloaded(succeeded=False)
    metrics.certificate_expires(99.0)
    assert value(metrics, "sluice_audit_lines_written_total") == 3
    assert value(metrics, "sluice_audit_lines_dropped_total", cause="QueueFull") == 2
    assert value(metrics, "sluice_http_refusals_total", code="413") == 1
    labels = {"phase": "Validate", "cause": "Deadline"}
    assert value(metrics, "sluice_internal_errors_total", **labels) == 1
    assert value(metrics, "sluice_facts_age_seconds") == 12
    assert value(metrics, "sluice_tls_reloads_total", result="Success") == 1
    assert value(metrics, "sluice_tls_reloads_total", result="Failure") == 1
    assert value(metrics, "sluice_certificate_expiry_timestamp_seconds") == 99


def test_two_sets_of_metrics_do_not_know_each_other(metrics: Metrics) -> None:
    Metrics().audit_written(1)
    assert value(metrics, "sluice_audit_lines_written_total") == 0


def test_every_metric_of_the_list_is_registered_and_nothing_else(metrics: Metrics) -> None:
    registered = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in metrics.registry.collect()
    }
    own = {name for name in registered if not name.startswith("process_")}
    assert own == {spec.name for spec in METRICS}


@pytest.mark.parametrize("spec", METRICS, ids=lambda spec: spec.name)
def test_names_follow_the_convention(spec: object) -> None:
    assert isinstance(spec, type(METRICS[0]))
    assert spec.name.startswith("sluice_")
    assert spec.name.endswith("_total") == (spec.kind is Kind.COUNTER)
    assert spec.kind is not Kind.HISTOGRAM or spec.name.endswith("_seconds")
    assert spec.help.endswith(".")


def test_the_reference_page_is_current() -> None:
    assert PAGE.read_text() == render(), f"run: {COMMAND}"


def test_the_command_prints_the_page() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reconciler.runtime.metrics_reference"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == render()


def first(name: str) -> set[tuple[str, ...]]:
    return set(next(spec for spec in METRICS if spec.name == name).first)


def test_series_of_failures_are_there_before_the_first_one(metrics: Metrics) -> None:
    causes = {(str(phase), str(cause)) for phase in Phase for cause in Cause}
    errors = {(each,) for each in error_names()}
    assert {("ApiError",), (SilenceError.__name__,)} < errors
    assert first("sluice_internal_errors_total") == causes
    assert first("sluice_audit_lines_dropped_total") == {(str(cause),) for cause in DropCause}
    assert first("sluice_release_failures_total") == errors
    assert first("sluice_mirror_failures_total") == errors
    assert first("sluice_status_failures_total") == errors
    for spec in METRICS:
        for values in spec.first:
            labels = dict(zip(spec.labels, values, strict=True))
            assert metrics.registry.get_sample_value(spec.name, labels) == 0
