# SPDX-License-Identifier: Apache-2.0
"""What every source of samples is to those who ask it; no source is known here."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from policies.telemetry.samples import Sample


class SourceError(Exception):
    """A source gave nothing that could be used. The message says why, without credentials.

    `retry_after_seconds` is what it asked for, if it did.
    """

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


Take = Callable[[Iterable[Sample]], None]
"""Takes up samples at once, so that a large answer is never held as a whole."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a look went. `problems` say what is missing; the same ones from look to look.

    `malformed` counts what could not be understood and was left out.
    """

    problems: tuple[str, ...] = ()
    malformed: int = 0


class Source(Protocol):
    """Something that can be asked for the newest samples."""

    @property
    def name(self) -> str:
        """Its name for logs and metrics, from a fixed set."""
        ...

    @property
    def is_by_node(self) -> bool:
        """Whether it can be asked for some nodes only; else each look brings all."""
        ...

    async def read(self, nodes: AbstractSet[str], take: Take) -> Report:
        """Hand over the newest samples of these nodes, maybe also others'. Raises SourceError."""
        ...
