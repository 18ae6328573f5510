# SPDX-License-Identifier: Apache-2.0
"""The benchmark measures what it says, and ends with a line that a program can read."""

import json

import orjson
import pytest

from tests.bench import webhook
from tests.bench.pods import gpu_pod, gpu_review


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
    for case in webhook.CASES:
        assert report[case.name]["reviews_per_second"] > 0
        assert 0 < report[case.name]["p50_ms"] <= report[case.name]["p99_ms"]
        assert report[case.name]["cpu_us_per_review"] > 0
    assert report["ratio"] > 0
    assert report["ratio_different_pods"] > 0


def test_different_pods_are_as_large_as_one_and_all_different() -> None:
    reviews = {gpu_review(number) for number in range(4000)}
    assert len(reviews) == 4000
    assert {len(review) for review in reviews} == {len(gpu_review())}
