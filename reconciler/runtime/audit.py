# SPDX-License-Identifier: Apache-2.0
"""The audit log: takes decisions from reviews and writes them from a thread of its own.

A review never waits for it: what does not fit into the queue, or cannot be written, is dropped,
counted and logged once a minute. What a line holds must not be here (audit_record), nor how a
file is kept (audit_file).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from reconciler.runtime.audit_file import LineFile, Rotation
from reconciler.runtime.audit_record import AuditEntry, UnserializableError, to_line

logger = logging.getLogger(__name__)

_LOG_INTERVAL: Final = timedelta(minutes=1)


class DropCause(StrEnum):
    """Why a line was lost."""

    QUEUE_FULL = "QueueFull"
    WRITE_FAILED = "WriteFailed"
    UNSERIALIZABLE = "Unserializable"
    CLOSED = "Closed"


class AuditCounters(Protocol):
    """Where lines are counted."""

    def audit_written(self, lines: int) -> None:
        """Count lines handed to the operating system."""

    def audit_dropped(self, lines: int, cause: str) -> None:
        """Count lines that were lost."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much may wait for the disk, and how long lines are gathered into one write."""

    max_bytes: int = 32 * 1024 * 1024
    batch_seconds: float = 0.05


class AuditLog:
    """Writes one line per decision; `record` may be called from any thread.

    Opening raises AuditFileError, so that a wrong path is found at start. Lines become text in
    `record`: a few microseconds each there keep the queue's size exact, and no pod is kept.
    """

    def __init__(
        self,
        path: str,
        counters: AuditCounters,
        rotation: Rotation = Rotation(),  # noqa: B008 - frozen
        limits: QueueLimits = QueueLimits(),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._file = LineFile(path, rotation, clock())
        self._path = path
        self._counters = counters
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._lines: list[bytes] = []
        self._bytes = 0
        self._closed = False
        self._filled = threading.Event()
        self._stopping = threading.Event()
        self._last_complaint: datetime | None = None
        self._dropped_since = 0
        # A daemon, since a disk that hangs must not keep the process from ending.
        self._writer = threading.Thread(target=self._run, name="audit-writer", daemon=True)
        self._writer.start()

    def record(self, entries: Sequence[AuditEntry]) -> None:
        """Queue the lines of decisions, all or none. Never blocks and never raises."""
        self.record_lines(self._to_lines(entries))

    def record_lines(self, lines: Sequence[bytes]) -> None:
        """Queue whole lines, each with its only line feed at its end, as `record` does."""
        size = sum(map(len, lines))
        with self._lock:
            closed = self._closed
            fits = not closed and self._bytes + size <= self._limits.max_bytes
            if fits:
                self._lines += lines
                self._bytes += size
        if fits:
            self._filled.set()
        elif closed:
            self._drop(len(lines), DropCause.CLOSED, "the log is closed")
        else:
            waiting = f"{self._limits.max_bytes} bytes wait to be written"
            self._drop(len(lines), DropCause.QUEUE_FULL, waiting)

    def close(self, timeout_seconds: float) -> bool:
        """Write what is queued and close; tell whether that was done within the time."""
        with self._lock:
            self._closed = True
        self._stopping.set()
        self._filled.set()
        self._writer.join(timeout_seconds)
        if not self._writer.is_alive():
            return True
        with self._lock:
            left = len(self._lines)
        logger.error("audit log %s: gave up on %d lines or more", self._path, left)
        return False

    def _to_lines(self, entries: Sequence[AuditEntry]) -> list[bytes]:
        lines = []
        for entry in entries:
            try:
                lines.append(to_line(entry))
            except UnserializableError as error:
                self._drop(1, DropCause.UNSERIALIZABLE, str(error))
        return lines

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._filled.wait()
            self._stopping.wait(self._limits.batch_seconds)
            self._filled.clear()
            self._write_queued()
        self._write_queued()
        self._file.close()

    def _write_queued(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
            self._bytes = 0
        if not lines:
            return
        try:
            written = self._file.write(lines, self._clock())
        except Exception as error:  # noqa: BLE001 - a dead writer would lose every later line
            why = error.strerror if isinstance(error, OSError) else None
            self._drop(len(lines), DropCause.WRITE_FAILED, why or repr(error))
            return
        self._counters.audit_written(written)
        if written < len(lines):
            self._drop(len(lines) - written, DropCause.WRITE_FAILED, "written in part only")
        else:
            self._recovered()

    def _drop(self, lines: int, cause: DropCause, why: str) -> None:
        self._counters.audit_dropped(lines, cause)
        now = self._clock()
        with self._lock:
            self._dropped_since += lines
            last = self._last_complaint
            if last is not None and now - last < _LOG_INTERVAL:
                return
            self._last_complaint = now
            dropped, self._dropped_since = self._dropped_since, 0
        logger.error("audit log %s: %d lines dropped: %s", self._path, dropped, why)

    def _recovered(self) -> None:
        if self._last_complaint is None:
            return
        with self._lock:
            self._last_complaint = None
            dropped, self._dropped_since = self._dropped_since, 0
        logger.warning("audit log %s: written again; %d more were lost", self._path, dropped)
