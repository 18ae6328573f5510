# SPDX-License-Identifier: Apache-2.0
"""The benchmark measures what it says, and ends with a line that a program can read."""

import json

import orjson
import pytest

from tests.bench import webhook
from tests.bench.pods import gpu_pod


def test_the_pod_has_the_size_that_figures_are_compared_at() -> None:
    assert 2700 <= len(orjson.dumps(gpu_pod())) <= 2900


def test_a_short_run_ends_with_the_figures_of_both_servers_and_fails_below_what_is_required(
    capfd: pytest.CaptureFixture[str],
) -> None:
    short = ["--rounds", "1", "--seconds", "0.3", "--connections", "4"]
    assert webhook.main([*short, "--require", "100"]) == 1
    *_, last = capfd.readouterr().out.splitlines()
    report = json.loads(last)
    assert report["bench"] == "webhook"
    for server in ("bare", "sluice"):
        assert report[server]["reviews_per_second"] > 0
        assert 0 < report[server]["p50_ms"] <= report[server]["p99_ms"]
        assert report[server]["cpu_us_per_review"] > 0
    assert 0 < report["ratio"] < 2
    assert 0 < report["cpu_ratio"] < 2
