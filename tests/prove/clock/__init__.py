# SPDX-License-Identifier: Apache-2.0
"""A wall clock that a proof can move while a process runs."""

import struct
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).parent


class WallClock:
    """The wall clock of the processes that are started with its environment."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(struct.pack("d", 0.0))

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process must be started with."""
        return {"PYTHONPATH": str(_HERE), "SHIFTED_CLOCK": str(self._path)}

    def move(self, seconds: float) -> None:
        """Have it go so far from the true time, at once."""
        with self._path.open("r+b") as file:  # in place: it is mapped into the processes
            file.write(struct.pack("d", seconds))
