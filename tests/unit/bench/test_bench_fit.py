# SPDX-License-Identifier: Apache-2.0
"""The bench of the fit check runs, and measures calls that do something."""

import json

import pytest

from tests.bench import fit


def test_a_small_run_has_all_its_figures() -> None:
    found = fit.measure(count=12, pods=400, rounds=20)
    assert (found["bench"], found["nodes"], found["pods"]) == ("fit", 12, 400)
    for call in ("put_node_heartbeat", "bind_and_answer", "assume", "gang_of_8_undone"):
        assert 0 < found[call]["p50_us"] <= found[call]["p99_us"]
    assert found["build_seconds"] > 0
    assert found["memory_mib"] > 0


def test_the_last_line_is_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"NODES": 4, "PODS": 40, "_ROUNDS": 5}.items():
        monkeypatch.setattr(fit, name, value)
    assert fit.main() == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["nodes"] == 4
