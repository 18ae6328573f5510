# SPDX-License-Identifier: Apache-2.0
"""Keeps noise of the network out of the log: what is not HTTP is the sender's fault, not ours."""

import logging
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError


class ProtocolLog(logging.LoggerAdapter[logging.Logger]):
    """Takes aiohttp's records; malformed HTTP becomes one line at debug, without a traceback."""

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        """Log an error of the protocol handler."""
        error = kwargs.get("exc_info")
        if isinstance(error, HttpProcessingError):
            self.debug("not HTTP: %s", error.message)
        else:
            self.error(msg, *args, **kwargs)
