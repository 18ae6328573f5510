# SPDX-License-Identifier: Apache-2.0
"""A file of whole lines that is rotated by size and age and survives a full disk.

Written by hand since the handlers of `logging` rotate by one of the two only, leave a torn line
behind when the disk is full, and raise where lines must be dropped. No threads in here.
"""

import fcntl
import os
import stat
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

STDOUT: Final = "-"
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_OWNER_ONLY: Final = 0o600
_PRIVATE_DIRECTORY: Final = 0o700


class AuditFileError(Exception):
    """A path that lines cannot be written to; the message names it and says why."""


class AuditFileInUseError(AuditFileError):
    """Another process writes to it."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is set aside, and how many of those are kept (`.1` is the newest)."""

    max_bytes: int = 100 * 1024 * 1024
    max_age: timedelta = timedelta(hours=24)
    keep: int = 5


class LineFile:
    """An open audit file, or stdout for `-`. Used by one thread; locked against other processes.

    Devices (`/dev/full`, `/dev/null`) are written to as they are: not locked, never rotated.
    """

    def __init__(self, path: str, rotation: Rotation, now: datetime) -> None:
        self._path = path
        self._rotation = rotation
        self._descriptor = -1
        self._regular = False
        self._size = 0
        self._torn = False
        self._born = now
        self._open(now)

    def write(self, lines: list[bytes], now: datetime) -> int:
        """Append lines (each ending in its only line feed) and return how many are wholly written.

        Rotates first if it is time to. Raises OSError if nothing could be written.
        """
        data = b"".join(lines)
        if self._regular:
            self._renew(len(data), now)
        if self._torn:
            self._size += os.write(self._descriptor, b"\n")
            self._torn = False
        return data.count(b"\n", 0, self._append(data))

    def close(self) -> None:
        """Close the file; stdout stays open."""
        if self._path != STDOUT and self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _append(self, data: bytes) -> int:
        view = memoryview(data)
        done = 0
        try:
            while done < len(data):
                done += os.write(self._descriptor, view[done:])
        except OSError:
            whole = data.rfind(b"\n", 0, done) + 1
            if done > whole:
                self._cut(done - whole)
            if not whole:
                raise
            done = whole
        self._size += done
        return done

    def _cut(self, surplus: int) -> None:
        """Take back a line that was written in part only, or remember that it is there."""
        try:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - surplus)
        except OSError:
            self._torn = True

    def _renew(self, coming: int, now: datetime) -> None:
        if not self._is_in_place():
            self._reopen(now)
        elif self._size and (
            self._size + coming > self._rotation.max_bytes
            or now - self._born >= self._rotation.max_age
        ):
            self._shift()
            self._reopen(now)

    def _is_in_place(self) -> bool:
        """Tell whether the path still names the open file: others may rotate it too."""
        try:
            named, opened = Path(self._path).stat(), os.fstat(self._descriptor)
        except OSError:
            return False
        return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)

    def _shift(self) -> None:
        """Rename the file to `.1`, that to `.2` and so on; the oldest goes."""
        for number in range(self._rotation.keep, 0, -1):
            source = Path(f"{self._path}.{number - 1}" if number > 1 else self._path)
            if source.exists():
                source.replace(f"{self._path}.{number}")
        if self._rotation.keep == 0:
            Path(self._path).unlink()

    def _reopen(self, now: datetime) -> None:
        old = self._descriptor
        try:
            self._open(now)
        except AuditFileError as error:
            raise OSError(str(error)) from error
        os.close(old)

    def _open(self, now: datetime) -> None:
        if self._path == STDOUT:
            self._descriptor = 1
            return
        try:
            Path(self._path).parent.mkdir(_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            descriptor = os.open(self._path, _FLAGS | os.O_NONBLOCK, _OWNER_ONLY)
        except OSError as error:
            raise AuditFileError(f"audit log {self._path}: {error.strerror}") from error
        try:
            self._adopt(descriptor, now)
        except OSError as error:
            os.close(descriptor)
            if _is_locked(error):
                message = f"audit log {self._path}: in use by another process"
                raise AuditFileInUseError(message) from error
            raise AuditFileError(f"audit log {self._path}: {error.strerror}") from error

    def _adopt(self, descriptor: int, now: datetime) -> None:
        status = os.fstat(descriptor)
        regular = stat.S_ISREG(status.st_mode)
        if regular:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, _OWNER_ONLY)
            self._born = _first_time(self._path) or now
            self._torn = not _ends_a_line(self._path, status.st_size)
        self._descriptor, self._regular, self._size = descriptor, regular, status.st_size


def _is_locked(error: OSError) -> bool:
    return isinstance(error, BlockingIOError)


def _first_time(path: str) -> datetime | None:
    """Return the time that the first line begins with: files do not know when they were made."""
    with Path(path).open("rb") as file:
        head = file.read(64)
    parts = head.split(b'"')
    if len(parts) < 4 or parts[1] != b"time":  # noqa: PLR2004 - {"time":"<here>"
        return None
    try:
        first = datetime.fromisoformat(parts[3].decode())
    except ValueError:
        return None
    return first if first.tzinfo else None


def _ends_a_line(path: str, size: int) -> bool:
    """Tell whether the last line is whole; it is not after a crash in the middle of a write."""
    if not size:
        return True
    with Path(path).open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"
