# SPDX-License-Identifier: Apache-2.0
"""A GPUPolicy document becomes a match, a form and compiled rules; faults in CEL are located."""

import pytest

from policies.cel import EvaluationError
from policies.documents.problems import Severity
from policies.model.labels import Expression, Operator
from policies.model.policy import Enforcement, Policy
from tests.unit.documents.loading import COMPLETE, Loader, document, errors, lines, served


def policy(load_texts: Loader, spec: str) -> Policy:
    result = load_texts(COMPLETE, document("GPUPolicy", "mine", spec))
    return next(p for p in served(result).policies if p.name == "mine")


def test_every_field_reaches_the_policy(load_texts: Loader) -> None:
    spec = """
        description: For a test.
        order: 10
        match:
          tenants: [chat]
          namespaces: [chat, other]
          labels: {matchLabels: {workload: inference}}
          ownerKinds: [Job, ReplicaSet]
          when:
          - {name: one, expression: gpu.devices == 1}
        variables:
        - {name: count, expression: object.spec.containers.size()}
        rewrite: {profile: whole}
        exclusive: true
        validate:
        - name: few
          expression: variables.count < 3
          message: too many containers
          messageExpression: '"has " + string(variables.count) + " containers"'
        enforcement: Warn
        """
    found = policy(load_texts, spec)

    assert (found.name, found.order, found.description) == ("mine", 10, "For a test.")
    assert (found.profile, found.exclusive, found.enforcement) == ("whole", True, Enforcement.WARN)
    assert found.match.tenants == frozenset({"chat"})
    assert found.match.namespaces == frozenset({"chat", "other"})
    assert found.match.owner_kinds == frozenset({"Job", "ReplicaSet"})
    assert found.match.labels is not None
    assert found.match.labels.expressions == (Expression("workload", Operator.IN, ("inference",)),)
    assert [(w.name, w.expression.source) for w in found.match.when] == [
        ("one", "gpu.devices == 1")
    ]
    assert [v.name for v in found.variables] == ["count"]
    rule = found.validate[0]
    assert (rule.name, rule.message) == ("few", "too many containers")
    assert rule.message_expression is not None


def test_what_is_left_out_has_its_default(load_texts: Loader) -> None:
    found = policy(load_texts, "rewrite: {profile: whole}\norder: 5")

    assert found.match.tenants is None
    assert found.match.namespaces is None
    assert found.match.labels is None
    assert found.match.owner_kinds is None
    assert (found.match.when, found.variables, found.validate) == ((), (), ())
    assert not found.exclusive
    assert found.enforcement is Enforcement.ENFORCE


def test_policies_are_served_in_order_then_by_name(load_texts: Loader) -> None:
    texts = [
        document("GPUPolicy", name, f"order: {order}\nmatch: {{namespaces: [{name}]}}\n"
                 "rewrite: {profile: whole}")
        for name, order in [("c", 20), ("b", 20), ("d", 3), ("a", 100)]
    ]  # fmt: skip
    found = served(load_texts("---\n".join(texts))).policies

    assert [p.name for p in found] == ["d", "b", "c", "a"]


def test_expressions_are_evaluated_with_the_variables_before_them(load_texts: Loader) -> None:
    spec = """
        match:
          when:
          - {name: big, expression: variables.twice == 4}
        variables:
        - {name: count, expression: gpu.devices}
        - {name: twice, expression: variables.count * 2}
        validate:
        - {name: x, expression: variables.twice > 1}
        """
    result = load_texts(COMPLETE, document("GPUPolicy", "mine", spec))
    policies = served(result)
    found = next(p for p in policies.policies if p.name == "mine")
    values: dict[str, object] = {
        "object": {},
        "oldObject": None,
        "request": {},
        "namespaceObject": {},
        "tenant": {},
    }
    scope = policies.environment.scope({**values, "gpu": {"devices": 2}})

    assert found.match.when[0].expression.evaluate(scope) is True
    assert found.validate[0].expression.evaluate(scope) is True


@pytest.mark.parametrize(
    "rule",
    [
        "{name: x, expression: gpus.devices == 1}",
        "{name: x, expression: 'gpus.devices == 1'}",
        '{name: x, expression: "gpu.devices == 1 &&\\tgpus.devices == 1"}',
        "name: x\n  expression: gpu.devices == 1 &&\n    gpus.devices == 1",
        "name: x\n  expression: >-\n    gpu.devices == 1\n    && gpus.devices == 1",
        "name: x\n  expression: |\n    gpu.devices == 1\n\n      && gpus.devices == 1",
    ],
)
def test_a_fault_in_cel_is_where_it_stands_in_the_file(load_texts: Loader, rule: str) -> None:
    text = document("GPUPolicy", "mine", f"validate:\n- {rule}")
    before = text[: text.index("gpus")]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    found = errors(load_texts(text))

    assert len(found) == 1, found
    place = f"a.yaml:{line}:{column}"
    assert found[0].startswith(f"{place}: error: GPUPolicy/mine: spec.validate[0].expression: ")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "match: {when: [{name: a, expression: 'object.spec.containerz.size() > 1'}]}",
            "containerz",
        ),
        ("validate: [{name: a, expression: gpu.devices}]", "bool"),
        ("validate: [{name: a, expression: 'true', messageExpression: '1'}]", "string"),
        ("validate: [{name: a, expression: 'nosuch(1)'}]", "nosuch"),
        ("validate: [{name: a, expression: variables.nosuch == 1}]", "nosuch"),
        ("validate: [{name: a, expression: '1 +'}]", "Syntax"),
    ],
)
def test_an_expression_that_does_not_compile_keeps_the_set_from_being_served(
    load_texts: Loader, spec: str, message: str
) -> None:
    result = load_texts(COMPLETE, document("GPUPolicy", "mine", spec))

    assert result.policy_set is None
    assert any(message.lower() in line.lower() for line in errors(result)), lines(result)


def test_every_faulty_expression_of_a_policy_is_told(load_texts: Loader) -> None:
    spec = """
        match: {when: [{name: a, expression: gpus.devices == 1}]}
        variables: [{name: v, expression: gpus.devices}]
        validate:
        - {name: a, expression: gpus.devices == 1, messageExpression: gpus.x}
        """
    found = errors(load_texts(COMPLETE, document("GPUPolicy", "mine", spec)))

    assert [line.split(": ")[3] for line in found] == [
        "spec.match.when[0].expression",
        "spec.variables[0].expression",
        "spec.validate[0].expression",
        "spec.validate[0].messageExpression",
    ]


def test_the_fault_of_a_variable_is_not_repeated_where_it_is_used(load_texts: Loader) -> None:
    spec = """
        variables:
        - {name: v, expression: gpus.devices}
        - {name: w, expression: variables.v + 1}
        - {name: vv, expression: "1"}
        validate:
        - {name: a, expression: variables.w == 1}
        - {name: b, expression: variables.vv == "x"}
        """
    found = errors(load_texts(COMPLETE, document("GPUPolicy", "mine", spec)))

    assert "spec.variables[0].expression" in found[0]
    assert not [line for line in found if "variables[1]" in line or "validate[0]" in line]


def test_a_variable_cannot_have_a_name_that_cel_reserves(load_texts: Loader) -> None:
    spec = "variables: [{name: namespace, expression: '1'}]\nvalidate: []"
    found = errors(load_texts(COMPLETE, document("GPUPolicy", "mine", spec)))

    assert any("namespace is a reserved word of CEL" in line for line in found)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("exclusive: true\nvalidate: []", "5:14: error: GPUPolicy/mine: spec.exclusive: needs rew"),
        (
            "exclusive: true\nrewrite: {profile: slice-4}",
            (
                "5:14: error: GPUPolicy/mine: spec.exclusive: needs a profile of mode Exclusive; "
                "slice-4 is TimeSlice"
            ),
        ),
        (
            "rewrite: {profile: slice-5}",
            (
                '5:22: error: GPUPolicy/mine: spec.rewrite.profile: there is no profile "slice-5"; '
                'did you mean "slice-4"?'
            ),
        ),
        (
            "match: {tenants: [chat, chta]}\nvalidate: []",
            (
                '5:27: error: GPUPolicy/mine: spec.match.tenants[1]: there is no tenant "chta"; '
                'did you mean "chat"?'
            ),
        ),
        ("rewrite: {fit: {memory: 8Gi}}", "spec.rewrite.fit.memory: must be a mapping of fields"),
        ("match: {labels: {matchExpressions: [{key: a, operator: In}]}}", "operator In needs"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(load_texts: Loader, spec: str, error: str) -> None:
    found = errors(load_texts(COMPLETE, document("GPUPolicy", "mine", spec)))

    assert any(error in line for line in found), found


def test_a_policy_without_effect_is_pointed_out(load_texts: Loader) -> None:
    result = load_texts(COMPLETE, document("GPUPolicy", "mine", "description: x"))

    assert any("the policy does nothing" in line for line in lines(result, Severity.WARNING))


def test_a_rule_without_a_value_for_a_pod_is_an_evaluation_error(load_texts: Loader) -> None:
    result = load_texts(
        COMPLETE,
        document(
            "GPUPolicy",
            "mine",
            "validate: [{name: a, expression: 'object.metadata.labels.x == \"y\"'}]",
        ),
    )
    found = next(p for p in served(result).policies if p.name == "mine")
    scope = served(result).environment.scope({"object": {"metadata": {"labels": {}}}})

    with pytest.raises(EvaluationError):
        found.validate[0].expression.evaluate(scope)
