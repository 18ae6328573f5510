# SPDX-License-Identifier: Apache-2.0
"""The simulation that placement is measured with is what the real kube-scheduler does."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bench.openb import make_trace
from tests.bench.reality import compare, part_of

_POINTS = 1.0


@pytest.mark.timeout(400)
def test_the_real_scheduler_gives_out_as_much_as_the_simulation(
    binaries: Mapping[str, Path],
) -> None:
    assert binaries, "a control plane of its own is started"
    found = compare(part_of(make_trace(300, 3000), 300, seed=1), seed=1)
    assert found.apart <= _POINTS, found
    assert found.lost, "a cluster that is not full shows nothing"
