# SPDX-License-Identifier: Apache-2.0
"""Label selectors: from the document to the value, with the rules of the API server."""

from collections.abc import Iterator

from policies.documents.field import Field
from policies.documents.kubernetes_names import is_qualified_name, key_problems
from policies.documents.problems import Problem, quoted
from policies.model.labels import Expression, LabelSelector, Operator

_WITH_VALUES = frozenset({Operator.IN, Operator.NOT_IN})


def compile_selector(field: Field) -> LabelSelector:
    """Return the selector; `matchLabels` are requirements with one value."""
    labels = field.at("matchLabels").text_map()
    return LabelSelector(
        (
            *(Expression(key, Operator.IN, (value,)) for key, value in sorted(labels.items())),
            *(_expression(item) for item in field.at("matchExpressions").items()),
        )
    )


def selector_problems(field: Field) -> Iterator[Problem]:
    """Yield what the API server would refuse in a selector."""
    yield from key_problems(field.at("matchLabels"))
    for item in field.at("matchExpressions").items():
        key, operator, values = item.at("key"), item.at("operator"), item.at("values")
        if key.exists and not is_qualified_name(key.text()):
            yield key.problem(f"{quoted(key.text())} is no label key")
        if not operator.exists:
            continue
        needs_values = operator.text() in _WITH_VALUES
        if needs_values and not values.texts():
            yield values.problem(f"operator {operator.text()} needs at least one value")
        if not needs_values and values.exists:
            yield values.problem(f"operator {operator.text()} takes no values")


def _expression(item: Field) -> Expression:
    operator = Operator(item.at("operator").text(Operator.EXISTS))
    return Expression(item.at("key").text(), operator, item.at("values").texts())
