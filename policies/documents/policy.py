# SPDX-License-Identifier: Apache-2.0
"""Kind `GPUPolicy`: from the document to the value, with its CEL compiled."""

from collections.abc import Iterable, Iterator
from typing import Final

from policies.cel import ResultType
from policies.documents.compiled import Compiled
from policies.documents.expression_cache import ExpressionCache
from policies.documents.expressions import ExpressionCompiler
from policies.documents.field import Field, Subject
from policies.documents.labels import compile_selector, selector_problems
from policies.documents.problems import Problem, Severity
from policies.documents.rewrite import compile_fit, compile_limit, rewrite_problems
from policies.model.policy import Enforcement, Match, NamedExpression, Policy, Validation

DEFAULT_ORDER: Final = 1000


def compile_policy(subject: Subject, expressions: ExpressionCache) -> Compiled[Policy]:
    """Return the policy; faulty expressions are left out of it and in the problems."""
    root = subject.root
    spec = root.at("spec")
    compiler = ExpressionCompiler(expressions)
    for item in spec.at("variables").items():
        compiler.declare(item)
    policy = Policy(
        name=root.at("metadata", "name").text(),
        order=spec.at("order").integer(DEFAULT_ORDER),
        match=_match(spec.at("match"), compiler),
        variables=tuple(NamedExpression(*variable) for variable in compiler.variables),
        profile=spec.at("rewrite", "profile").optional_text(),
        fit=compile_fit(spec.at("rewrite", "fit"), compiler),
        memory_limit=compile_limit(spec.at("memoryLimit")),
        exclusive=spec.at("exclusive").boolean(),
        validate=tuple(_validations(spec.at("validate").items(), compiler)),
        enforcement=Enforcement(spec.at("enforcement").text(Enforcement.ENFORCE)),
        description=spec.at("description").text(),
    )
    return Compiled(policy, root, (*compiler.problems, *_problems(spec)))


def _match(match: Field, compiler: ExpressionCompiler) -> Match:
    return Match(
        tenants=match.at("tenants").optional_set(),
        namespaces=match.at("namespaces").optional_set(),
        labels=compile_selector(match.at("labels")) if match.at("labels").exists else None,
        owner_kinds=match.at("ownerKinds").optional_set(),
        when=tuple(_conditions(match.at("when").items(), compiler)),
    )


def _conditions(items: Iterable[Field], compiler: ExpressionCompiler) -> Iterator[NamedExpression]:
    for item in items:
        expression = compiler.compile(item.at("expression"), ResultType.BOOL)
        if expression is not None:
            yield NamedExpression(item.at("name").text(), expression)


def _validations(items: Iterable[Field], compiler: ExpressionCompiler) -> Iterator[Validation]:
    for item in items:
        expression = compiler.compile(item.at("expression"), ResultType.BOOL)
        message = compiler.compile(item.at("messageExpression"), ResultType.STRING)
        if expression is not None:
            name, text = item.at("name").text(), item.at("message").optional_text()
            yield Validation(name, expression, text, message)


def _problems(spec: Field) -> Iterator[Problem]:
    yield from selector_problems(spec.at("match", "labels"))
    yield from rewrite_problems(spec)
    rewrite, exclusive = spec.at("rewrite"), spec.at("exclusive")
    if exclusive.boolean() and not rewrite.exists:
        yield exclusive.problem("needs rewrite.profile with a profile of mode Exclusive")
    if not rewrite.exists and not spec.at("validate").exists:
        message = "the policy does nothing: it has neither rewrite nor validate"
        yield spec.problem(message, severity=Severity.WARNING)
