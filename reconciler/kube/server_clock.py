# SPDX-License-Identifier: Apache-2.0
"""What time the API server thinks it is, from the `Date` of its answers.

Time stamps of objects are the server's, so ages and grace periods are measured on its clock: that
of this machine may be an hour off without anything going wrong. Pure: monotonic times are
arguments.
"""

from email.utils import parsedate_to_datetime
from typing import Final

_REFRESH_SECONDS: Final = 10.0
"""How often a header is looked at; in between the monotonic clock is exact enough."""


class ServerClock:
    """The server's time; unknown until it has answered once.

    A header is cut to the second, so the time told is up to one second behind.
    """

    def __init__(self) -> None:
        self._offset: float | None = None
        self._observed_at = 0.0

    def observe(self, date: str | None, monotonic: float) -> None:
        """Take the `Date` header of an answer that came at a monotonic time."""
        if self._offset is not None and monotonic - self._observed_at < _REFRESH_SECONDS:
            return
        try:
            stamp = parsedate_to_datetime(date or "").timestamp()
        except (ValueError, TypeError, OverflowError):
            return
        self._offset, self._observed_at = stamp - monotonic, monotonic

    def now(self, monotonic: float) -> float | None:
        """Return the server's time in Unix seconds, None before its first answer."""
        return None if self._offset is None else self._offset + monotonic
