# SPDX-License-Identifier: Apache-2.0
"""One text is compiled once, in a load and in the next one, and never taken for another."""

from collections.abc import Mapping, Sequence

import pytest

from policies.cel import Environment, Expression, ResultType, Scope
from policies.cel.reads import Reads
from policies.documents.expression_cache import Expressions
from policies.documents.load import LoadResult, SourceText, load
from policies.vendors import Catalog
from tests.unit.documents.loading import COMPLETE, document, served


class Counting:
    """An environment that remembers what it was asked to compile."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.compiled: list[str] = []

    def compile(
        self, source: str, result: ResultType, variables: Sequence[tuple[str, Expression]] = ()
    ) -> Expression:
        self.compiled.append(source)
        return self._environment.compile(source, result, variables)

    def reads(self, name: str) -> Reads:
        return self._environment.reads(name)

    def scope(self, values: Mapping[str, object]) -> Scope:
        return self._environment.scope(values)


@pytest.fixture
def environment(environment: Environment) -> Counting:
    return Counting(environment)


def policy(name: str, rule: str, variables: str = "[]") -> str:
    spec = f"variables: {variables}\nvalidate: [{{name: a, expression: '{rule}'}}]"
    return document("GPUPolicy", name, spec)


def loaded(
    catalog: Catalog, environment: Counting, *policies: str, known: Expressions | None = None
) -> LoadResult:
    source = SourceText("all.yaml", "---\n".join([COMPLETE, *policies]).encode())
    return load([source], catalog=catalog, environment=environment, known=known)


def rule(result: LoadResult, name: str) -> Expression:
    return next(p for p in served(result).policies if p.name == name).validate[0].expression


def test_a_text_of_many_policies_is_compiled_once(catalog: Catalog, environment: Counting) -> None:
    policies = [policy(f"p{number}", "gpu.devices == 1") for number in range(20)]
    result = loaded(catalog, environment, *policies)

    assert environment.compiled == ["gpu.devices == 1"]
    assert len({id(rule(result, f"p{number}")) for number in range(20)}) == 1


def test_a_text_that_must_yield_something_else_is_compiled_for_it(
    catalog: Catalog, environment: Counting
) -> None:
    both = policy("p", "variables.v == 1", "[{name: v, expression: gpu.devices == 1}]")
    found = loaded(catalog, environment, both, policy("q", "gpu.devices == 1")).problems

    assert environment.compiled.count("gpu.devices == 1") == 2
    assert len(found) == 1
    assert "GPUPolicy/p: spec.validate[0].expression" in str(found[0])


def test_a_text_with_other_variables_is_another(catalog: Catalog, environment: Counting) -> None:
    policies = [
        policy("one", "variables.v == 1", "[{name: v, expression: '1'}]"),
        policy("two", "variables.v == 1", "[{name: v, expression: '2'}]"),
        policy("again", "variables.v == 1", "[{name: v, expression: '1'}]"),
    ]
    result = loaded(catalog, environment, *policies)
    scope = environment.scope({})

    assert rule(result, "one").evaluate(scope) is True
    assert rule(result, "two").evaluate(scope) is False
    assert rule(result, "again") is rule(result, "one")


def test_variables_that_are_not_used_make_no_other_text(
    catalog: Catalog, environment: Counting
) -> None:
    result = loaded(
        catalog,
        environment,
        policy("one", "gpu.devices == 1", "[{name: v, expression: '1'}]"),
        policy("two", "gpu.devices == 1", "[{name: w, expression: '2'}]"),
    )

    assert rule(result, "one") is rule(result, "two")


def test_every_fault_of_a_text_is_told_where_it_stands(
    catalog: Catalog, environment: Counting
) -> None:
    result = loaded(catalog, environment, policy("p", "gpus == 1"), policy("q", "gpus == 1"))

    assert [problem.document for problem in result.problems] == ["GPUPolicy/p", "GPUPolicy/q"]


def test_what_an_earlier_load_has_compiled_is_used_again(
    catalog: Catalog, environment: Counting
) -> None:
    first = loaded(catalog, environment, policy("p", "gpu.devices == 1"))
    changed = policy("p", "gpu.devices == 1"), policy("q", "gpu.devices == 2")
    second = loaded(catalog, environment, *changed, known=first.expressions)

    assert environment.compiled == ["gpu.devices == 1", "gpu.devices == 2"]
    assert rule(second, "p") is rule(first, "p")


def test_what_is_used_no_more_is_not_kept(catalog: Catalog, environment: Counting) -> None:
    first = loaded(catalog, environment, policy("p", "gpu.devices == 1"))
    second = loaded(catalog, environment, policy("p", "true"), known=first.expressions)

    assert [source for source, _, _ in second.expressions] == ["true"]


def test_a_broken_set_keeps_what_it_has_compiled(catalog: Catalog, environment: Counting) -> None:
    broken = loaded(catalog, environment, policy("p", "gpu.devices == 1"), "a: [\n")
    mended = loaded(catalog, environment, policy("p", "gpu.devices == 1"), known=broken.expressions)

    assert broken.policy_set is None
    assert mended.policy_set is not None
    assert environment.compiled == ["gpu.devices == 1"]
