# SPDX-License-Identifier: Apache-2.0
"""What does not load, and where the fault is said to be."""

import pytest

from policies.cel import Environment, Expression, ExpressionError, ResultType

NO_SUCH_FIELD = [
    (
        "object.spec.contaners",
        "PodSpec has no field `contaners`: did you mean `containers`?",
        1,
        13,
    ),
    ("has(object.spec.nodeNam)", "PodSpec has no field `nodeNam`: did you mean `nodeName`?", 1, 17),
    (
        'object.spec.containers.all(c,\n  c.imag == "")',
        "Container has no field `imag`: did you mean `image`?",
        2,
        5,
    ),
    ("object.spec.?contaners.hasValue()", "PodSpec has no field `contaners`", 1, 14),
    ("oldObject.spec.nodeNam", "PodSpec has no field `nodeNam`", 1, 16),
    ("gpu.devises == 1", "Gpu has no field `devises`: did you mean `devices`?", 1, 5),
    ("tenant.quota.gpu", "TenantQuota has no field `gpu`: did you mean `gpus`?", 1, 14),
    ('tenant.quota.pools["a"].top', "GpuQuota has no field `top`", 1, 25),
    ("request.uid", "AdmissionRequest has no field `uid`", 1, 9),
    ("namespaceObject.spec.x", "NamespaceSpec has no field `x`", 1, 22),
]
WRONG_TYPES = [
    (
        "object.spec.nodeName + 1",
        "no matching overload for '_+_' applied to '(string, int)'",
        1,
        22,
    ),
    ('quantity("1") + 1', "applied to '(Quantity, int)'", 1, 15),
    ('quantity("1").isGreaterThan(1)', "applied to '(Quantity, int)'", 1, 28),
    ('quantity("1").value', "Quantity has no field `value`", 1, 15),
    ('"é" + 1', "no matching overload", 1, 5),
    ("object.spec.", "Syntax error", 1, 13),
    ("nothing == 1", "there is no `nothing`", 1, 1),
    ("objekt.kind", "there is no `objekt`: did you mean `object`?", 1, 1),
]
NOT_SUPPORTED = [
    ('cidr("10.0.0.0/8").containsIP("10.0.0.1")', "`cidr` of Kubernetes' cidr library", 1, 1),
    ('ip("10.0.0.1").family() == 4', "`ip` of Kubernetes' ip library", 1, 1),
    ('object.kind.find("P") == "P"', "`find` of Kubernetes' regex library", 1, 13),
    ('url("https://a").getHost() == "a"', "`url` of Kubernetes' url library", 1, 1),
    ('semver("1.2.3").major() == 1', "`semver` of Kubernetes' semver library", 1, 1),
    ('authorizer.path("/x").check("get").allowed()', "`authorizer` of Kubernetes'", 1, 1),
    ('format.named("uuid").hasValue()', "`format` of Kubernetes' format library", 1, 1),
]


@pytest.mark.parametrize(
    ("source", "message", "line", "column"), [*NO_SUCH_FIELD, *WRONG_TYPES, *NOT_SUPPORTED]
)
def test_a_fault_is_found_at_load_with_its_place(
    environment: Environment, source: str, message: str, line: int, column: int
) -> None:
    with pytest.raises(ExpressionError) as caught:
        environment.compile(source, ResultType.ANY)
    first = caught.value.problems[0]
    assert message in first.message
    assert (first.line, first.column) == (line, column)


def test_all_faults_of_an_expression_are_told_at_once(environment: Environment) -> None:
    with pytest.raises(ExpressionError) as caught:
        environment.compile("object.foo == 1 &&\n gpu.bar == 2", ResultType.BOOL)
    assert [(p.line, p.column) for p in caught.value.problems] == [(1, 8), (2, 6)]


@pytest.mark.parametrize(
    ("source", "result", "yields"),
    [
        ("1", ResultType.BOOL, "yields int, not bool"),
        ("object.spec.containers", ResultType.BOOL, r"yields list\(Container\), not bool"),
        ("true", ResultType.STRING, "yields bool, not string"),
        ("object.spec.?nodeName", ResultType.STRING, r"yields optional_type\(string\), not string"),
    ],
)
def test_a_result_of_another_type_is_found_at_load(
    environment: Environment, source: str, result: ResultType, yields: str
) -> None:
    with pytest.raises(ExpressionError, match=yields):
        environment.compile(source, result)


@pytest.mark.parametrize(
    ("source", "message", "column"),
    [
        ("variables.nams == []", "there is no variable `nams`: did you mean `names`?", 1),
        ("true && has(variables.names)", "a variable is always there: leave has() out", 9),
        ("variables == {}", "write `variables.<name>`", 1),
        ('variables["names"] == []', "write `variables.<name>`", 1),
        ("[1].exists(object, object == 1)", "a loop may not name its variable `object`", 12),
        ("variables.names.exists(n, n.x == 1)", "cannot be the operand of a select", 28),
        ("variables.names[0] + 1", "applied to '(string, int)'", 20),
    ],
)
def test_misuse_of_a_variable_is_found_at_its_place(
    environment: Environment, source: str, message: str, column: int
) -> None:
    names = environment.compile("object.spec.containers.map(c, c.name)", ResultType.ANY)
    declared: list[tuple[str, Expression]] = [("names", names)]
    with pytest.raises(ExpressionError) as caught:
        environment.compile(source, ResultType.BOOL, declared)
    first = caught.value.problems[0]
    assert message in first.message
    assert (first.line, first.column) == (1, column)


def test_source_beyond_the_limit_is_refused(environment: Environment) -> None:
    environment.compile(f"{'true && ' * 600}true", ResultType.BOOL)
    with pytest.raises(ExpressionError, match="longer than 5000 characters"):
        environment.compile(f"{'true && ' * 700}true", ResultType.BOOL)


@pytest.mark.parametrize(
    "source",
    [
        "gpu.containers.all(a, gpu.containers.all(b, gpu.containers.all(c, c.devices > 0)))",
        "lists.range(101).all(x, lists.range(101).all(y, x + y >= 0))",
        "object.spec.containers.map(c, lists.range(30000)).size() > 0",
    ],
)
def test_what_would_run_over_its_budget_on_a_large_pod_does_not_load(
    environment: Environment, source: str
) -> None:
    with pytest.raises(ExpressionError, match=r"more than \d+ .*for a pod of 50 containers"):
        environment.compile(source, ResultType.BOOL)


def test_what_fails_on_made_up_values_loads_all_the_same(environment: Environment) -> None:
    environment.compile("object.metadata.labels['team'] == 'chat'", ResultType.BOOL)
