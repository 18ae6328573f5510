# SPDX-License-Identifier: Apache-2.0
"""Becomes another Python program on one core: `python -m tests.bench.pinned CORE ARGUMENTS...`."""

import os
import sys

if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])  # noqa: S606 - no shell is wanted
