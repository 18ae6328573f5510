# SPDX-License-Identifier: Apache-2.0
"""The bench of the planner runs, and its passes do something."""

from tests.bench import planner


def test_a_small_run_has_all_its_figures() -> None:
    found = planner.measure(scale=50, rounds=3)
    assert (found["bench"], found["nodes"], found["running"]) == ("planner", 24, 1000)
    assert found["released_until_nothing_goes"] > 0
    assert found["waiting"] > 0
    for change in ("a_pod_came", "a_pod_ended", "a_release", "a_node_changed", "nothing"):
        assert (
            0 < found[f"pass_after_{change}_ms"]["p50"] <= found[f"pass_after_{change}_ms"]["max"]
        )
