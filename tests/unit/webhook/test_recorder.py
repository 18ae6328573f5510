# SPDX-License-Identifier: Apache-2.0
"""Answered reviews are recorded some at a time, and none is forgotten."""

from collections.abc import Callable
from typing import cast

import pytest

from policies.model.request import Phase
from policies.model.settings import Mode
from reconciler.runtime.audit_record import AuditEntry
from reconciler.runtime.metrics import Metrics
from tests.support.reviews import body, review
from tests.support.serving import NOW, REWRITTEN, RecordingAudit, sample
from webhook.envelope import parse
from webhook.recorder import BATCH, DELAY_SECONDS, Recorder

REQUEST = parse(body(review()), Phase.MUTATE)
ENTRY = AuditEntry(REQUEST, REWRITTEN, Mode.ENFORCE, True, (), NOW, 250)


class Later:
    """Remembers what was to be called later, and calls it when told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def __call__(self, seconds: float, function: Callable[[], None]) -> None:
        self.calls.append((seconds, function))

    def come(self) -> None:
        calls, self.calls = self.calls, []
        for _, function in calls:
            function()


def counted(metrics: object) -> float:
    return sample(metrics, "sluice_review_duration_seconds_count", phase="Mutate")


def test_without_a_clock_each_is_recorded_at_once() -> None:
    metrics, audit = Metrics(), RecordingAudit()
    Recorder(metrics, audit).add(ENTRY)
    assert audit.entries == [ENTRY]
    assert counted(metrics) == 1
    total = "sluice_review_duration_seconds_sum"
    assert sample(metrics, total, phase="Mutate") == pytest.approx(0.00025)


def test_those_of_a_few_milliseconds_are_recorded_together() -> None:
    metrics, audit, later = Metrics(), RecordingAudit(), Later()
    recorder = Recorder(metrics, audit, later)
    for _ in range(3):
        recorder.add(ENTRY)
    assert audit.entries == []
    assert [seconds for seconds, _ in later.calls] == [DELAY_SECONDS]
    later.come()
    assert audit.entries == [ENTRY] * 3
    assert counted(metrics) == 3
    recorder.add(ENTRY)
    assert len(later.calls) == 1
    later.come()
    assert len(audit.entries) == 4


def test_a_full_batch_does_not_wait() -> None:
    metrics, audit, later = Metrics(), RecordingAudit(), Later()
    recorder = Recorder(metrics, audit, later)
    for _ in range(BATCH + 1):
        recorder.add(ENTRY)
    assert len(audit.entries) == BATCH
    later.come()
    assert len(audit.entries) == counted(metrics) == BATCH + 1


def test_nothing_is_recorded_where_nothing_waits() -> None:
    audit, later = RecordingAudit(), Later()
    recorder = Recorder(Metrics(), audit, later)
    recorder.add(ENTRY)
    recorder.flush()
    later.come()
    recorder.flush()
    assert audit.entries == [ENTRY]


def test_a_fault_costs_one_batch_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    class Once(RecordingAudit):
        def record(self, entries: object) -> None:
            if "failed" not in caplog.text and not caplog.records:
                raise ValueError("failed")
            super().record(cast("list[AuditEntry]", entries))

    audit = Once()
    recorder = Recorder(Metrics(), audit)
    recorder.add(ENTRY)
    recorder.add(ENTRY)
    assert audit.entries == [ENTRY]
    assert f"not recorded: {REQUEST.uid}" in caplog.text
