# SPDX-License-Identifier: Apache-2.0
"""The measurement of pods' memory measures what it says, and a pod stays within its bound."""

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.bench import pod_memory


def test_a_pod_takes_at_most_4_kib_with_everything_that_it_shares() -> None:
    # In a process of its own: threads that other tests left here would be counted too.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        report = pool.submit(pod_memory.measure, 1000, 200).result()

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
