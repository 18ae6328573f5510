# SPDX-License-Identifier: Apache-2.0
"""Both engines say the same of any small pod, and neither raises anything but its own error."""

from collections.abc import Mapping
from functools import cache
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.cel import (
    Environment,
    EvaluationError,
    Expression,
    ResultType,
    build_environment,
)

FALLBACK: Final = build_environment("cel-python")
QUANTITIES: Final = st.sampled_from(["1", "1k", "1Ki", "500m", "0", "-1", "1.5Gi", "1K", "", "x"])
TEXTS: Final = st.characters(codec="utf-8", exclude_characters="\0")
NAMES: Final = st.text(TEXTS, max_size=4)
CONTAINERS: Final = st.fixed_dictionaries(
    {"name": NAMES, "image": NAMES},
    optional={
        "resources": st.fixed_dictionaries(
            {}, optional={"limits": st.dictionaries(st.just("memory"), QUANTITIES)}
        ),
        "env": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"value": NAMES}), max_size=2
        ),
    },
)
PODS: Final = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"labels": st.dictionaries(NAMES, NAMES)})},
    optional={
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(CONTAINERS, max_size=3)},
            optional={"priority": st.integers(-(2**63), 2**63 - 1), "hostNetwork": st.booleans()},
        )
    },
)
SOURCES: Final = (
    "object.spec.containers.all(c, c.name != '')",
    "object.spec.containers.exists(c, c.image.startsWith('a') || c.resources.limits.size() > 0)",
    "object.spec.containers.filter(c, has(c.env)).map(c, c.env.size())",
    "object.spec.containers.map(c, c.name).join(',')",
    "object.spec.containers.map(c, c.name).isSorted()",
    "object.spec.containers.map(c, c.name).min()",
    "object.spec.containers.map(c, c.image).distinct().size()",
    "object.spec.containers.map(c, size(c.name)).sum()",
    "object.spec.containers.map(c, quantity(c.resources.limits['memory'])).map(q, q.sign())",
    "object.spec.containers.all(c, isQuantity(c.resources.limits['memory']))",
    "object.spec.containers.exists(c, quantity(c.image).isGreaterThan(quantity('1000')))",
    "object.spec.containers.exists_one(c, c.name == c.image)",
    "object.spec.containers.map(c, c.name.upperAscii() + c.name.lowerAscii())",
    "object.spec.containers.map(c, c.name.split('a'))",
    "object.spec.containers.map(c, c.name.replace('', '-'))",
    "object.spec.containers.map(c, c.name.indexOf(c.image))",
    "object.spec.containers.map(c, c.name.lastIndexOf('a'))",
    "object.spec.containers.map(c, c.name.substring(1))",
    "sets.intersects(object.spec.containers.map(c, c.name), ['a', '', '0'])",
    "sets.equivalent(object.spec.containers.map(c, c.image), ['', '0'])",
    "has(object.spec.priority) && object.spec.priority > 0",
    "object.spec.priority + 1",
    "object.spec.priority * 2 / 3",
    "object.spec.hostNetwork ? 'host' : 'pod'",
    "has(object.metadata.labels) && 'a' in object.metadata.labels",
    "object.metadata.labels['a'].matches('^a+$')",
    "object.metadata.labels.all(k, object.metadata.labels[k] == k)",
    "object.metadata == object.metadata",
)


@cache
def _compiled(source: str) -> tuple[tuple[Environment, Expression], ...]:
    """Compile for both engines; the default one anew, so that it gets only what this reads."""
    environments = (build_environment("cel-expr"), FALLBACK)
    return tuple((each, each.compile(source, ResultType.ANY)) for each in environments)


def _outcome(environment: Environment, expression: Expression, pod: object) -> object:
    try:
        return expression.evaluate(environment.scope({"object": pod}))
    except EvaluationError:
        return "fails"


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=40)
@given(pod=PODS)
def test_both_engines_agree_on_any_pod(source: str, pod: Mapping[str, object]) -> None:
    default, fallback = (_outcome(*compiled, pod) for compiled in _compiled(source))
    assert default == fallback
    assert type(default) is type(fallback)
