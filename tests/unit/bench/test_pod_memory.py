# SPDX-License-Identifier: Apache-2.0
"""The measurement of pods' memory measures what it says, and a pod stays within its bound."""

import json

import pytest

from tests.bench import pod_memory


def test_a_pod_takes_at_most_4_kib_with_everything_that_it_shares() -> None:
    report = pod_memory.measure(1000, 200)

    assert report["bytes_per_pod"] <= 4096
    assert report["shapes"] >= pod_memory._SIZES
    assert report["ledger_mib"] > 0


def test_it_ends_with_one_line_of_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pod_memory, "PODS", 600)
    monkeypatch.setattr(pod_memory, "WAITING", 100)

    assert pod_memory.main() == 0

    assert json.loads(capsys.readouterr().out)["pods"] == 600
