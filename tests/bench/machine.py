# SPDX-License-Identifier: Apache-2.0
"""What a measurement was made on: a figure without it says nothing."""

import os
import platform
from importlib.metadata import version
from pathlib import Path


def describe_machine() -> dict[str, object]:
    """Return processor, cores, and the versions that matter."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("aiohttp", "uvloop", "orjson")},
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
