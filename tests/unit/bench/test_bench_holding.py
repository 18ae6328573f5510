# SPDX-License-Identifier: Apache-2.0
"""A short run of the measurement of what holds the loop."""

import gc
from collections.abc import Iterator

import pytest

from tests.bench import holding


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


async def test_a_short_run_lists_all_pods_and_follows_their_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(holding, "_EVENTS", 300)
    report = await holding.measure(2000, 400)
    assert report["pods"] == 2000
    for part in ("listing", "changing"):
        assert report[part]["longest_cpu_ms"] > 0
        assert report[part]["cpu_seconds"] > 0
    assert report["full_collection_of_all_cpu_ms"] > report["changing"]["full_collection_cpu_ms"]
