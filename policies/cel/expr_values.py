# SPDX-License-Identifier: Apache-2.0
"""Values that come out of cel-expr-python, made into plain Python.

Two of its traps end here: an error is a value whose text is truthy, and a null that leaves the
engine takes a reference of None with it.
"""

import ctypes
import re
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from cel_expr_python import cel
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from policies.cel.expression import EvaluationError, ResultType
from policies.cel.problems import type_text

_STATUS: Final = re.compile(r"^[A-Z_]+: ")
_MISSING: Final = re.compile(r'^Key not found in map : "?(.*?)"?$')
_NEVER_FREED: Final = 1 << 40
_PLAUSIBLE_DRIFT: Final = 1 << 16


def keep_none_alive() -> None:
    """Give None so many references that it is never freed, as Python does itself from 3.12 on.

    cel-expr-python 0.1.3 returns null without taking a reference (`py_cel_value.cc`, kNull), so
    that some thousand nulls end Python 3.11 with "deallocating None".
    """
    if sys.version_info >= (3, 12):
        return
    count = ctypes.c_ssize_t.from_address(id(None))
    known = sys.getrefcount(None)
    if known < _NEVER_FREED // 2 and abs(count.value - known) < _PLAUSIBLE_DRIFT:
        count.value += _NEVER_FREED


def parse_timestamp(text: str) -> Timestamp:
    """Read RFC 3339 text, to the nanosecond. Raises ValueError."""
    timestamp = Timestamp()
    timestamp.FromJsonString(text)
    return timestamp


def returning_engine_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that the engine can take what it returns: moments only as messages."""

    def adapted(*arguments: Any) -> Any:
        value = function(*arguments)
        if isinstance(value, str) and "\0" in value:  # the engine would end it there
            raise ValueError("the text has a NUL character")
        if isinstance(value, datetime):
            moment = Timestamp()
            moment.FromDatetime(value)
            return moment
        if isinstance(value, timedelta):
            length = Duration()
            length.FromTimedelta(value)
            return length
        return value

    return adapted


def to_result(value: Any, result: ResultType) -> object:
    """Return the value of an evaluation. Raises EvaluationError for errors and other types."""
    plain = _taken_out(value)
    if result is ResultType.BOOL:
        if plain is True or plain is False:
            return plain
    elif result is ResultType.ANY:
        return _plain(value, plain)
    elif value.type() == cel.Type.STRING:
        return plain
    _raise_error(value, plain)
    raise EvaluationError(f"the value is {type_text(str(value.type()))}, not {result.value}")


def is_error(value: Any) -> bool:
    """Tell whether an evaluation ended in an error, which is a value to the engine."""
    return bool(value.type() == cel.Type.ERROR)


def _taken_out(value: Any) -> object:
    """Return the value one level deep, with values of the engine inside it."""
    try:
        return value.value()
    except TypeError as error:  # optional values have no type and no Python form
        raise EvaluationError("the value is optional: use orValue()") from error


def _plain(value: Any, plain: object) -> object:
    """Convert what a value holds to plain data."""
    _raise_error(value, plain)
    if isinstance(plain, list):
        return [_plain(item, _taken_out(item)) for item in plain]
    if isinstance(plain, dict):
        return {key: _plain(item, _taken_out(item)) for key, item in plain.items()}
    if isinstance(plain, cel.Type):
        return type_text(str(plain))
    return bytes(plain) if isinstance(plain, bytearray) else plain


def _raise_error(value: Any, plain: object) -> None:
    if isinstance(plain, str) and is_error(value):
        raise EvaluationError(error_text(plain))


def error_text(text: str) -> str:
    """Take the status name off an error's text, and name a missing key as Kubernetes does."""
    message = _STATUS.sub("", " ".join(text.split()))
    if match := _MISSING.match(message):
        return f"no such key: {match[1]}"
    return message
