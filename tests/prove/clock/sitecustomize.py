# SPDX-License-Identifier: Apache-2.0
"""Shifts the wall clock of the Python process that finds this on its path at its start.

The seconds stand as a double in the file that SHIFTED_CLOCK names, which may change at any time.
The monotonic clock stays, as it does where an administrator sets a clock. Only for proofs.
"""

import ctypes
import datetime as dt
import gc
import mmap
import os
import struct
import time
from collections.abc import Callable
from typing import Any

_SIZE = 8


def _read_shift(path: str) -> Callable[[], float]:
    with open(path, "rb") as file:  # noqa: PTH123 - as few imports as can be before the program
        shared = mmap.mmap(file.fileno(), _SIZE, access=mmap.ACCESS_READ)
    return lambda: float(struct.unpack("d", shared[:_SIZE])[0])


def _now(cls: type[dt.datetime], tz: dt.tzinfo | None = None) -> dt.datetime:
    return cls.fromtimestamp(time.time(), tz)


def _utcnow(cls: type[dt.datetime]) -> dt.datetime:
    return cls.fromtimestamp(time.time(), dt.UTC).replace(tzinfo=None)


def _install(shift: Callable[[], float]) -> None:
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + shift()
    time.time_ns = lambda: real_ns() + int(shift() * 1e9)
    # The type itself must stay the same object: extensions compare with it. Its methods cannot be
    # set by assignment, so they are set where the type keeps them.
    methods: Any = gc.get_referents(dt.datetime.__dict__)[0]
    methods |= {"now": classmethod(_now), "utcnow": classmethod(_utcnow)}
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(dt.datetime))


if _path := os.environ.get("SHIFTED_CLOCK"):
    _install(_read_shift(_path))
