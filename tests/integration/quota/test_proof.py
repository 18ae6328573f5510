# SPDX-License-Identifier: Apache-2.0
"""The short form of `python -m tests.prove`: the same scenarios, each with less of everything."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.prove.load import Extent
from tests.prove.proof import prove

_SHORT = Extent(
    pods=200,
    kills=3,
    restarts=1,
    freezes=1,
    freeze_seconds=0.0,
    requotes=0,
    gang_share=0.0,
    cases=1,
)


@pytest.mark.timeout(400)
async def test_no_ceiling_is_passed_and_no_pod_is_lost_whatever_happens(
    binaries: Mapping[str, Path], tmp_path: Path
) -> None:
    report = await prove(binaries, tmp_path, _SHORT)
    assert report.is_clean, (report.figures, report.texts)
    assert report.figures["kills"] == _SHORT.kills
    assert report.figures["released"] > _SHORT.pods
    assert report.figures["waiting"] > 0
