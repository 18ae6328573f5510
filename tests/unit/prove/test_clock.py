# SPDX-License-Identifier: Apache-2.0
"""The wall clock that a proof moves: every way to read it, while the process runs."""

import json
import subprocess
import sys
from pathlib import Path

from tests.prove.clock import WallClock

_PROGRAM = """
import json, sys, time
from datetime import UTC, datetime
for line in sys.stdin:
    times = [time.time(), time.time_ns() / 1e9, datetime.now(UTC).timestamp(),
             datetime.now().timestamp(), datetime.utcnow().replace(tzinfo=UTC).timestamp()]
    print(json.dumps([type(datetime.now()) is datetime, time.monotonic(), *times]), flush=True)
"""


def test_every_reading_of_the_wall_clock_moves_and_the_monotonic_one_stays(tmp_path: Path) -> None:
    clock = WallClock(tmp_path / "clock")
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        env=dict(clock.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        read = []
        for seconds in (0.0, 3600.0, -3600.0):
            clock.move(seconds)
            process.stdin.write("\n")
            process.stdin.flush()
            read.append(json.loads(process.stdout.readline()))
        process.stdin.close()
    true, ahead, back = read
    assert all(each[0] is True for each in read)
    assert abs(back[1] - true[1]) < 60
    for now, later, earlier in zip(true[2:], ahead[2:], back[2:], strict=True):
        assert abs(later - now - 3600) < 60
        assert abs(earlier - now + 3600) < 60
