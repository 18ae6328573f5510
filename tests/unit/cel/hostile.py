# SPDX-License-Identifier: Apache-2.0
"""Expressions and inputs that once ended the process, or would; run as a program it tries all.

`python -m tests.unit.cel.hostile` runs them with little memory and prints how many there were.
"""

import json
import resource
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.cel import (
    Environment,
    EvaluationError,
    ExpressionError,
    ResultType,
    build_environment,
)

_MEMORY_LIMIT: Final = 1 << 30
_BIG: Final = 'object.metadata.annotations["big"]'
_NAME: Final = "object.metadata.name"
_CONTAINERS: Final = "object.spec.containers"
POD: Final[Mapping[str, Any]] = {
    "metadata": {"name": "x" * 2000, "annotations": {"big": "ab," * 80_000}},
    "spec": {"containers": [{"name": f"c{number}", "image": "i"} for number in range(500)]},
}

TOO_MUCH: Final = (
    f'{_NAME}.replace("x", {_NAME}).replace("x", {_NAME}).replace("x", {_NAME}).size() > 0',
    f'{_NAME}.replace("", {_NAME}).size() > 0',
    f"{_CONTAINERS}.map(c, c.name + {_BIG}).size() > 0",
    f'{_CONTAINERS}.exists(c, c.name + {_BIG} == "x")',
    f'{_CONTAINERS}.map(c, {_BIG}).join(",").size() > 0',
    f"{_CONTAINERS}.map(c, {_BIG}.upperAscii()).size() > 0",
    f'{_BIG}.split(",").distinct().size() > 0',
    f'sets.contains({_BIG}.split(","), {_BIG}.split(","))',
    f"{_CONTAINERS}.all(c, {_CONTAINERS}.all(d, c.name == d.name || true))",
    f'{_CONTAINERS}.all(c, "%s".format([object.spec]) != "")',
    f'{_CONTAINERS}.all(c, "a".matches({_BIG}) || true)',
    "lists.range(3000000000).size() > 0",
    '"x"' + '.replace("x", "xx")' * 25 + ' == ""',
    "[1].map(n, lists.range(900000).slice(0, 900000)).size() > 0",
)
WILL_NOT_LOAD: Final = (
    "[1]" + ".map(a, [a, a])" * 25 + ".size() > 0",
    'optional.of("x")' + ".optMap(a, a + a)" * 30 + ".hasValue()",
    f"[{_CONTAINERS}].map(a, {_CONTAINERS}.map(b, {_CONTAINERS}.map(c, object))).size() > 0",
    "(" * 2000 + "true" + ")" * 2000,
    "[" * 300 + "]" * 300 + ".size() > 0",
    "1" + " + 1" * 1200 + " > 0",
    "object" + ".a" * 2000,
    "[optional.of(1)].size() > 0",
    "[1].includes(optional.of(1))",
    "[dyn(optional.of(1))].isSorted()",
    "(true ? optional.of(1) : dyn(1)) == 1",
    "optional.of(optional.of(1)).orValue(dyn(1)) == 1",
    '"a".matches("(((a{1000}){1000}){1000})")',
    '"a".matches("[")',
    'duration("soon") > duration("1s")',
    'timestamp("today") == timestamp("2026-01-01T00:00:00Z")',
    'quantity("1K").isInteger()',
    "'\ud800' == ''",
    "'\0' == ''",
    "",
)


def unreadable() -> Iterator[tuple[str, object]]:
    """Yield pods that the engine must not be given, with what the error says."""
    deep: dict[str, object] = {}
    for _ in range(200_000):
        deep = {"a": deep}
    yield "Recursion limit", {"metadata": deep}
    yield "surrogates", {"metadata": {"name": "a\ud800b"}}
    yield "NUL", {"metadata": {"name": "a\0b"}}
    yield "NUL", {"metadata": {"labels": {"a\0b": ""}}}
    yield "64-bit", {"spec": {"priority": 1 << 70}}
    yield "larger than", {"metadata": {"name": "x" * (2 << 20)}}
    yield "not JSON", {"metadata": {1, 2}}
    yield "not an object", ["a pod"]


def attempt(environment: Environment, source: str, pod: object) -> str:
    """Return what became of an expression: its value, or the error, in a word."""
    try:
        expression = environment.compile(source, ResultType.BOOL)
        return str(expression.evaluate(environment.scope({"object": pod})))
    except (EvaluationError, ExpressionError) as error:
        return type(error).__name__


def main() -> None:
    """Try all with a gibibyte of memory, so that what would take more ends here."""
    environment = build_environment()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
    outcomes = [attempt(environment, source, POD) for source in (*TOO_MUCH, *WILL_NOT_LOAD)]
    outcomes += [attempt(environment, "has(object.metadata)", pod) for _, pod in unreadable()]
    nulls = environment.compile("[null, null, null]", ResultType.ANY)
    for _ in range(20_000):
        nulls.evaluate(environment.scope({}))
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
