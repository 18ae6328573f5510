# SPDX-License-Identifier: Apache-2.0
"""Shifts the wall clock of the Python process that finds this on its path at its start.

The seconds stand as a double in the file that SHIFTED_CLOCK names, which may change at any time.
The monotonic clock stays, as it does where an administrator sets a clock. Only for proofs.
"""

import datetime as dt
import mmap
import os
import struct
import time
from collections.abc import Callable
from typing import Any

_SIZE = 8
_Plain = dt.datetime


def _read_shift(path: str) -> Callable[[], float]:
    with open(path, "rb") as file:  # noqa: PTH123 - as few imports as can be before the program
        shared = mmap.mmap(file.fileno(), _SIZE, access=mmap.ACCESS_READ)
    return lambda: float(struct.unpack("d", shared[:_SIZE])[0])


class _Meta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Plain)


class _Shifted(_Plain, metaclass=_Meta):
    """In the place of `datetime`; every instance is a plain one, which C code checks for."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _Plain(*args, **kwargs)

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Any:
        return _Plain.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return _Plain.fromtimestamp(time.time(), dt.UTC).replace(tzinfo=None)


def _install(shift: Callable[[], float]) -> None:
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + shift()
    time.time_ns = lambda: real_ns() + int(shift() * 1e9)
    dt.datetime = _Shifted  # type: ignore[misc] # what it is for


if _path := os.environ.get("SHIFTED_CLOCK"):
    _install(_read_shift(_path))
