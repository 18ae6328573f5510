# SPDX-License-Identifier: Apache-2.0
"""Which engine evaluates: the one place that chooses."""

from typing import Literal, TypeAlias

from policies.cel.expression import Environment

Engine: TypeAlias = Literal["auto", "cel-expr", "cel-python"]


def build_environment(engine: Engine = "auto") -> Environment:
    """Return the environment of all expressions; `auto` takes cel-expr-python where it is.

    Engines are imported here, since there is no wheel of cel-expr-python for every platform.
    """
    if engine == "cel-python":
        return _cel_python()
    try:
        from policies.cel.expr_engine import ExprEnvironment  # noqa: PLC0415 - see the docstring
    except ImportError:
        if engine == "cel-expr":
            raise
        return _cel_python()
    return ExprEnvironment()


def _cel_python() -> Environment:
    from policies.cel.celpy_engine import CelpyEnvironment  # noqa: PLC0415 - it is slow to import

    return CelpyEnvironment()
