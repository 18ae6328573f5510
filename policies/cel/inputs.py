# SPDX-License-Identifier: Apache-2.0
"""What of a review an expression may see: plain JSON that an engine can take without harm.

The default engine ends strings at a NUL and overflows its stack on deep nesting, and Kubernetes
shows timestamps as such; so a value is looked at here, once per review and only if it is used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import is_not
from typing import Any, Final, TypeAlias

import orjson

from policies.cel.expression import EvaluationError
from policies.cel.limits import MAX_INPUT_BYTES
from policies.cel.reads import Reads, merged, pruned
from policies.cel.schema import TIMESTAMP, Schema, element_type
from policies.cel.variables import REQUEST, VARIABLES

_ESCAPED_NUL: Final = b"\\u0000"
Plan: TypeAlias = Mapping[str, "Plan | None"]
"""Where the timestamps of a message lie: field to None for one, or to the plan of a message."""

ParseTimestamp: TypeAlias = Callable[[str], object]
"""Makes the engine's timestamp of RFC 3339 text; raises ValueError."""


def timestamp_plan(schema: Schema, message: str) -> Plan:
    """Return where timestamps lie in a message, so that a walk visits nothing else."""
    plan: dict[str, Plan | None] = {}
    for field, kind in schema.messages[message].items():
        element = element_type(kind)
        if element == TIMESTAMP:
            plan[field] = None
        elif element in schema.messages and (inner := timestamp_plan(schema, element)):
            plan[field] = inner
    return plan


class Inputs:
    """Knows how each variable is prepared; one for all reviews."""

    def __init__(
        self, schema: Schema, parse_timestamp: ParseTimestamp, *, reads_all: bool = False
    ) -> None:
        self._parse = parse_timestamp
        self._reads: Mapping[str, Reads] = {}
        self._reads_all = reads_all
        self.version = 0
        self._plans = {
            variable.name: timestamp_plan(schema, variable.type)
            for variable in VARIABLES
            if variable.type in schema.messages
        }
        self._request_fields = schema.messages[REQUEST].keys()

    def expect(self, reads: Mapping[str, Reads]) -> None:
        """Add to what is read of the variables; what was prepared before may lack it.

        It only grows, so a set that goes on being served beside a newer one loses nothing.
        """
        grown = {name: merged(self._reads.get(name, {}), below) for name, below in reads.items()}
        self._reads = {**self._reads, **grown}
        self.version += 1

    def reads(self, name: str) -> Reads:
        """Return what can be read of a variable; nothing where no expression uses it."""
        return None if self._reads_all else self._reads.get(name, {})

    def read(self, name: str, value: object) -> "Input":
        """Return what expressions can read of a value; one that can be called is called first.

        Raises EvaluationError for what cannot be read.
        """
        if callable(value):
            value = value()
        if value is None:
            return NULL
        if not isinstance(value, Mapping):
            raise EvaluationError(f"`{name}` is not an object")
        if name == "request":
            value = {key: value[key] for key in self._request_fields & value.keys()}
        plain = value if isinstance(value, dict) else dict(value)
        plain = pruned(plain, self.reads(name))
        return Input(plain, to_json(name, plain))

    def prepare(self, name: str, given: "Input") -> Mapping[str, Any] | None:
        """Return what was read as the engine may have it. Raises EvaluationError."""
        plan, plain = self._plans.get(name), given.plain
        return with_timestamps(plain, plan, self._parse) if plan and plain is not None else plain


@dataclass(frozen=True, slots=True)
class Input:
    """A variable's value as far as it can be read, as data and as JSON."""

    plain: Mapping[str, Any] | None
    text: bytes


NULL: Final = Input(None, b"null")


def to_json(name: str, value: object) -> bytes:
    """Return a value as JSON, of the kind that the engine can take. Raises EvaluationError."""
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise EvaluationError(f"`{name}` cannot be read: {error}") from error
    if len(text) > MAX_INPUT_BYTES:
        raise EvaluationError(f"`{name}` is larger than {MAX_INPUT_BYTES} bytes")
    if _ESCAPED_NUL in text and _holds_nul(value):
        raise EvaluationError(f"`{name}` has a string with a NUL character")
    return text


def with_timestamps(value: Any, plan: Plan, parse: ParseTimestamp) -> Any:
    """Return the value with its timestamps parsed: itself if it has none, else a copy.

    Raises EvaluationError for one that is no RFC 3339 date and time.
    """
    if isinstance(value, list):
        items = [with_timestamps(item, plan, parse) for item in value]
        return items if any(map(is_not, items, value)) else value
    if not isinstance(value, dict):
        return value
    changes: dict[str, object] = {}
    for field, inner in plan.items():
        old = value.get(field)
        if old is None:
            continue
        new = _timestamp(old, parse) if inner is None else with_timestamps(old, inner, parse)
        if new is not old:
            changes[field] = new
    return {**value, **changes} if changes else value


def _timestamp(text: object, parse: ParseTimestamp) -> object:
    try:
        return parse(str(text))
    except ValueError as error:
        raise EvaluationError(f"{text!r} is not a timestamp") from error


def _holds_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_holds_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple) and any(map(_holds_nul, value))
