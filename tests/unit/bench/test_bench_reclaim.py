# SPDX-License-Identifier: Apache-2.0
"""The bench of reclaim runs, and its passes find whom to take back."""

import json

import pytest

from tests.bench import reclaim


def test_a_small_run_has_all_its_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaim, "_ROUNDS", 2)
    for name, value in {"NODES": 30, "OWED": 20, "GUARANTEES": (1, 20)}.items():
        monkeypatch.setattr(reclaim, name, value)
    assert reclaim.main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["bench"], found["nodes"], found["running"]) == ("reclaim", 30, 1200)
    assert found["victims"] >= found["beneficiaries"] > 0
    for change in ("nothing", "a_pod_ended", "ten_evictions", "fifty_notices"):
        figures = found[f"pass_after_{change}_ms"]
        assert 0 < figures["holds_the_loop"]["p50"] <= figures["holds_the_loop"]["max"]
        assert figures["cpu"]["p50"] > 0
