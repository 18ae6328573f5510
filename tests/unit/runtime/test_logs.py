# SPDX-License-Identifier: Apache-2.0
"""The process log, for machines and for people."""

import io
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator

import pytest

from reconciler.runtime.logs import LogFormat, configure

Configure = Callable[..., io.StringIO]
FORGED = "x\n12:00:00 ERROR   forged: y\x1b[2J"


@pytest.fixture
def to_string() -> Iterator[Configure]:
    """Configure logging to go into a string, and put back what was before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []  # `force` would close those of pytest

    def configured(log_format: LogFormat, level: str = "INFO") -> io.StringIO:
        stream = io.StringIO()
        configure(log_format, level, stream)
        return stream

    yield configured
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def fail() -> None:
    raise ZeroDivisionError


def test_json_is_one_object_a_line_with_what_was_passed_along(to_string: Configure) -> None:
    stream = to_string(LogFormat.JSON)
    extra = {"generation": "7c1f", "path": object, "level": "mine"}
    logging.getLogger("webhook").warning("set %s\nloaded", FORGED, extra=extra)
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", found.pop("time"))
    assert found == {
        "level": "warning",
        "logger": "webhook",
        "message": f"set {FORGED}\nloaded",
        "generation": "7c1f",
        "path": "<class 'object'>",
    }


def test_json_holds_the_traceback(to_string: Configure) -> None:
    stream = to_string(LogFormat.JSON)
    try:
        fail()
    except ZeroDivisionError:
        logging.getLogger("webhook").exception("failed")
    found = json.loads(stream.getvalue())
    assert found["exception"].endswith("ZeroDivisionError")
    assert "in fail" in found["exception"]


def test_what_json_cannot_say_is_still_a_line(to_string: Configure) -> None:
    stream = to_string(LogFormat.JSON)
    logging.getLogger("x").warning("%s", "\udcff", extra={"number": 2**80})
    found = json.loads(stream.getvalue())
    assert (found["message"], found["number"]) == ("\udcff", 2**80)


def test_text_is_one_line_whatever_the_name(to_string: Configure) -> None:
    stream = to_string(LogFormat.TEXT)
    logging.getLogger("webhook").warning("pod %s", FORGED)
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(r" WARNING webhook: pod x\n12:00:00 ERROR   forged: y\x1b[2J")


def test_text_shows_the_traceback_below_the_line(to_string: Configure) -> None:
    stream = to_string(LogFormat.TEXT)
    try:
        fail()
    except ZeroDivisionError:
        logging.getLogger("webhook").exception("failed")
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("ERROR   webhook: failed")
    assert lines[-1] == "ZeroDivisionError"


def test_less_than_the_level_is_left_out(to_string: Configure) -> None:
    stream = to_string(LogFormat.TEXT, "warning")
    logging.getLogger("webhook").info("no")
    logging.getLogger("webhook").error("yes")
    assert "no" not in stream.getvalue()
    assert "yes" in stream.getvalue()


def test_warnings_of_python_are_in_the_log(to_string: Configure) -> None:
    stream = to_string(LogFormat.JSON)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old API", DeprecationWarning, stacklevel=1)
    assert json.loads(stream.getvalue())["logger"] == "py.warnings"
