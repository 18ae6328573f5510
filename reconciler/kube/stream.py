# SPDX-License-Identifier: Apache-2.0
"""The wire format of a watch: one JSON event a line, of any length.

Pure: bytes in, events out. Source: Kubernetes API concepts, "Efficient detection of changes";
apimachinery `pkg/watch/watch.go`. Connections, time and stores are not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import orjson

from reconciler.kube.errors import MalformedAnswerError, error_from_status

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""Far above what an API server sends (3 MiB a request, a few times that once indented or escaped);
it bounds the memory that a broken peer can take."""


class EventType(StrEnum):
    """What a watch event says of its object. ERROR is raised, never delivered."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


_TYPES: Final[Mapping[str, EventType]] = {str(member): member for member in EventType}


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event as it came; a BOOKMARK's object holds nothing but a resourceVersion."""

    type: EventType
    object: Mapping[str, object]


class LineBuffer:
    """Cuts a byte stream into lines; each byte is copied once, however long the line."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without line ends and blank lines.

        Raises MalformedAnswerError when a line grows beyond the bound.
        """
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._keep(first)
            return []
        self._parts.append(first)
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts, self._size = [], 0
        self._keep(rest[-1])
        return [line for line in lines if line.strip()]

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max_bytes:
            raise MalformedAnswerError(f"a watch event of more than {self._max_bytes} bytes")
        if part:
            self._parts.append(part)


def decode_event(line: bytes) -> WatchEvent | None:
    """Return the event of one line, None for a type that this version does not know.

    Raises MalformedAnswerError for what is no event, and an ERROR event as the ApiError it holds.
    """
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise MalformedAnswerError(f"a watch event that is no JSON: {error}") from error
    body = event.get("object") if isinstance(event, dict) else None
    if not isinstance(body, dict):
        raise MalformedAnswerError("a watch event without an object")
    kind = event.get("type")
    if kind == "ERROR":
        raise error_from_status(body)
    known = _TYPES.get(kind) if isinstance(kind, str) else None
    return WatchEvent(known, body) if known else None
