# SPDX-License-Identifier: Apache-2.0
"""The audit log of a command: a file of a person's own, opened before anything is done."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from reconciler.cli.terminal import CommandError
from reconciler.runtime.audit import AuditLog
from reconciler.runtime.audit_file import AuditFileError

_CLOSE_SECONDS: Final = 30.0


class _Counted:
    """Counts lines as AuditLog demands it."""

    def __init__(self) -> None:
        self.dropped = 0

    def audit_written(self, lines: int) -> None:
        """Count lines handed to the operating system."""

    def audit_dropped(self, lines: int, cause: str) -> None:  # noqa: ARG002 - given by AuditLog
        """Count lines that were lost."""
        self.dropped += lines


class CommandAudit:
    """Takes lines until it is closed; only then it is known whether all of them were written."""

    def __init__(self, path: str) -> None:
        self._counted = _Counted()
        self._log = AuditLog(path, self._counted)
        self._is_written = True

    def record_lines(self, lines: Sequence[bytes]) -> None:
        """Queue whole lines. Never blocks and never raises."""
        self._log.record_lines(lines)

    def close(self) -> None:
        """Write what is queued."""
        self._is_written = self._log.close(_CLOSE_SECONDS)

    @property
    def is_whole(self) -> bool:
        """Whether every line has been written."""
        return self._is_written and not self._counted.dropped


@contextmanager
def opened(path: str) -> Iterator[CommandAudit]:
    """Open the log for the block. Raises CommandError where it cannot be written."""
    try:
        audit = CommandAudit(path)
    except AuditFileError as error:
        raise CommandError(f"{error}: name another file by --audit") from error
    try:
        yield audit
    finally:
        audit.close()
