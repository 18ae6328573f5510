# SPDX-License-Identifier: Apache-2.0
"""The environments of cel-expr-python: one that checks against types, one that evaluates JSON.

Both have the same libraries and macros, so one text gives the same tree in both.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from cel_expr_python import cel

from policies.cel.expr_values import returning_engine_values
from policies.cel.functions import FUNCTIONS, Function, Overload
from policies.cel.guard import CHARGE
from policies.cel.schema import PACKAGE, Schema
from policies.cel.variables import QUANTITY, VARIABLES, VARIABLES_NAME

_LIBRARIES: Final = (
    "{name: optional}",
    "{name: strings, version: 2}",  # as in Kubernetes
    "{name: sets}",
    "{name: lists}",
    "{name: two-var-comprehensions}",
)
_BINDINGS: Final = "{name: bindings}"  # for variables; Kubernetes offers no cel.bind to authors
_ORDERED: Final = ("int", "uint", "double")
_COMPARISONS: Final = {"_<_": "less", "_<=_": "less_eq", "_>_": "greater", "_>=_": "greater_eq"}


def reading_environment() -> Any:
    """Return an environment to read an author's text with: nothing is declared in it."""
    return cel.NewEnv(config=_config(_LIBRARIES))


def checking_environment(schema: Schema) -> Any:
    """Return an environment where every variable has its type; nothing is evaluated in it."""
    variables = {
        variable.name: _type(variable.type, schema)
        for variable in VARIABLES
        if variable.name != VARIABLES_NAME
    }
    extension = cel.CelExtension(
        "sluice.checks",
        [*_declarations(FUNCTIONS, schema), *_mixed_comparisons()],
    )
    return cel.NewEnv(
        schema.pool(),
        config=_config((*_LIBRARIES, _BINDINGS)),
        variables=variables,
        extensions=[extension],
    )


def evaluating_environment(charge: Callable[[int], object]) -> Any:
    """Return an environment where every variable is plain JSON; guards call `charge`."""
    guard = cel.FunctionDecl(
        CHARGE,
        [cel.Overload("sluice_charge", cel.Type.DYN, [cel.Type.INT], is_member=False, impl=charge)],
    )
    extension = cel.CelExtension("sluice.functions", [guard, *_implementations(FUNCTIONS)])
    return cel.NewEnv(
        config=_config((*_LIBRARIES, _BINDINGS)),
        variables={variable.name: cel.Type.DYN for variable in VARIABLES},
        extensions=[extension],
    )


def _config(libraries: tuple[str, ...]) -> Any:
    return cel.NewEnvConfigFromYaml(f"extensions: [{', '.join(libraries)}]")


def _declarations(functions: tuple[Function, ...], schema: Schema) -> Iterator[Any]:
    """Declare every overload with its exact types."""
    for function in functions:
        yield cel.FunctionDecl(
            function.name,
            [
                cel.Overload(
                    f"sluice_{function.name}_{number}",
                    return_type=_type(overload.result, schema),
                    parameters=[_type(kind, schema) for kind in overload.parameters],
                    is_member=overload.member,
                )
                for number, overload in enumerate(function.overloads)
            ],
        )


def _mixed_comparisons() -> Iterator[Any]:
    """Declare comparisons between kinds of numbers, which Kubernetes allows since 1.28.

    The runtime has them in any case; only the checker must be told.
    """
    for operator, word in _COMPARISONS.items():
        yield cel.FunctionDecl(
            operator,
            [
                cel.Overload(
                    f"{word}_{left}_{right}",
                    return_type=cel.Type.BOOL,
                    parameters=[cel.Type(left), cel.Type(right)],
                )
                for left in _ORDERED
                for right in _ORDERED
                if left != right
            ],
        )


def _implementations(functions: tuple[Function, ...]) -> Iterator[Any]:
    """Declare functions by what the runtime can tell apart: element types it cannot."""
    for function in functions:
        overloads = {
            (_kinds(overload), overload.member): overload for overload in function.overloads
        }
        yield cel.FunctionDecl(
            function.name,
            [
                cel.Overload(
                    f"sluice_{function.name}_{number}",
                    return_type=cel.Type.DYN,
                    parameters=[_KINDS[kind] for kind in kinds],
                    is_member=member,
                    impl=returning_engine_values(function.implementation),
                )
                for number, (kinds, member) in enumerate(overloads)
            ],
        )


_KINDS: Final = {
    "dyn": cel.Type.DYN,
    "int": cel.Type.INT,
    "string": cel.Type.STRING,
    "list": cel.Type.LIST,
    "map": cel.Type.MAP,
}


def _kinds(overload: Overload) -> tuple[str, ...]:
    return tuple(
        "map" if kind == QUANTITY else kind.partition("(")[0] for kind in overload.parameters
    )


def _type(name: str, schema: Schema) -> Any:
    """Return the checker's type for a name of functions.py or variables.py."""
    if name.startswith("list("):
        return cel.Type.List(_type(name[len("list(") : -1], schema))
    return cel.Type(f"{PACKAGE}.{name}" if name in schema.messages else name)
