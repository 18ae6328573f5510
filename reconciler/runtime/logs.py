# SPDX-License-Identifier: Apache-2.0
"""Sets up the process log on stderr: one line per record, as JSON or for people.

Decisions are not logged here; they have the audit log (reconciler.runtime.audit).
"""

import json
import logging
import sys
import time
from enum import StrEnum
from typing import IO, Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """How a record is written."""

    JSON = "json"
    TEXT = "text"


def configure(log_format: LogFormat, level: str = "INFO", stream: IO[str] | None = None) -> None:
    """Send every record of this level (a name of `logging`) and above to one stream.

    Replaces what was configured before. The default stream is stderr.
    """
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (RFC 3339, UTC), level, logger, message, extras, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        line: dict[str, object] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        for key, value in vars(record).items():
            if key not in _STANDARD:
                line.setdefault(key, value)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """For terminals. Line breaks in a message are escaped, so that no name can forge a record."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the first line of a record; a traceback follows on lines of its own."""
        record.message = "".join(
            char if char.isprintable() else ascii(char)[1:-1] for char in record.message
        )
        return super().formatMessage(record)


def _utc(seconds: float) -> str:
    micros = int(seconds % 1 * 1e6)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{micros:06d}Z"
