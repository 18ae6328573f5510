# SPDX-License-Identifier: Apache-2.0
"""A Tenant document becomes namespaces, exact milli-GPU, allowed profiles and the CEL variable."""

import pytest

from policies.documents.problems import Severity
from policies.model.labels import Expression, Operator
from policies.model.tenant import Tenant
from tests.unit.documents.loading import Loader, document, errors, lines, served


def tenant(load_texts: Loader, spec: str) -> Tenant:
    return served(load_texts(document("Tenant", "chat", spec))).tenants["chat"]


@pytest.mark.parametrize(
    ("written", "milli"),
    [
        ("32", 32000),
        ("0.125", 125),
        ("0.1", 100),
        ("20.25", 20250),
        ("0", 0),
        ("1.500", 1500),
        ("3.2e1", 32000),
        ("0.001", 1),
        ("999999.999", 999_999_999),
        ("1000000", 1_000_000_000),
    ],
)
def test_a_quota_is_exact_in_milli_gpu(load_texts: Loader, written: str, milli: int) -> None:
    spec = f"namespaces: {{names: [a]}}\nquota: {{gpus: {{ceiling: {written}}}}}"

    assert tenant(load_texts, spec).ceiling_milli == milli


def test_what_is_left_out_is_no_limit(load_texts: Loader) -> None:
    found = tenant(load_texts, "namespaces: {names: [a, b]}")

    assert found.namespaces == frozenset({"a", "b"})
    assert (found.selector, found.guarantee_milli, found.ceiling_milli) == (None, None, None)
    assert found.profiles is None
    assert found.may_use("anything")


def test_a_cohort_is_of_the_tenant_and_not_of_the_cel_variable(load_texts: Loader) -> None:
    without = tenant(load_texts, "namespaces: {names: [a]}")
    found = tenant(load_texts, "namespaces: {names: [a]}\ncohort: main")

    assert (without.cohort, found.cohort) == (None, "main")
    assert found.cel == without.cel


def test_profiles_are_names_or_patterns(load_texts: Loader) -> None:
    found = tenant(load_texts, 'namespaces: {names: [a]}\nprofiles: ["h100-*", whole]')

    assert found.may_use("h100-1g.10gb")
    assert found.may_use("whole")
    assert not found.may_use("a30-1g.6gb")


def test_a_selector_is_read_as_kubernetes_reads_it(load_texts: Loader) -> None:
    spec = """
        namespaces:
          selector:
            matchLabels: {team: research}
            matchExpressions:
            - {key: example.com/tier, operator: NotIn, values: [free]}
            - {key: gpu, operator: Exists}
        """
    selector = tenant(load_texts, spec).selector

    assert selector is not None
    assert selector.expressions == (
        Expression("team", Operator.IN, ("research",)),
        Expression("example.com/tier", Operator.NOT_IN, ("free",)),
        Expression("gpu", Operator.EXISTS),
    )


def test_cel_sees_name_labels_and_quota_as_written(load_texts: Loader) -> None:
    text = document("Tenant", "chat", "namespaces: {names: [a]}\nquota: {gpus: {guarantee: 1.5}}")
    text = text.replace("{name: chat}", "{name: chat, labels: {tier: gold}}")
    found = served(load_texts(text)).tenants["chat"]

    assert found.labels == {"tier": "gold"}
    assert found.cel == {
        "name": "chat",
        "labels": {"tier": "gold"},
        "quota": {"gpus": {"guarantee": 1.5, "ceiling": None}},
    }


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            "namespaces: {names: [a]}\nquota: {gpus: {guarantee: 2, ceiling: 1.5}}",
            (
                "6:29: error: Tenant/chat: spec.quota.gpus.guarantee: a guarantee of 2 is more "
                "than the ceiling 1.5"
            ),
        ),
        (
            "namespaces: {names: [a]}\ncohort: a.b",
            "6:11: error: Tenant/chat: spec.cohort: must be l",
        ),
        ("namespaces: {names: [a]}\ncohort: ''", "spec.cohort: must not be empty"),
        ("quota: {}", "5:3: error: Tenant/chat: spec.namespaces: is missing"),
        ("namespaces: {}", "5:15: error: Tenant/chat: spec.namespaces: must have at least one of "),
        (
            "namespaces: {selector: {matchLabels: {a b: c}}}",
            '5:41: error: Tenant/chat: spec.namespaces.selector.matchLabels["a b"]: "a b" is no la',
        ),
        (
            "namespaces: {selector: {matchExpressions: [{key: a, operator: In}]}}",
            "spec.namespaces.selector.matchExpressions[0].values: operator In needs at least one",
        ),
        (
            "namespaces: {selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}",
            "matchExpressions[0].values: operator Exists takes no values",
        ),
        (
            "namespaces: {selector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}}",
            'matchExpressions[0].operator: must be one of In, NotIn, Exists, DoesNotExist; is "Lik',
        ),
        (
            "namespaces: {selector: {matchExpressions: [{key: /a, operator: Exists}]}}",
            'matchExpressions[0].key: "/a" is no label key',
        ),
    ],
)
def test_a_tenant_that_cannot_be_is_refused(load_texts: Loader, spec: str, error: str) -> None:
    found = errors(load_texts(document("Tenant", "chat", spec)))

    assert len(found) == 1, found
    assert error in found[0]


def test_a_selector_that_takes_every_namespace_is_pointed_out(load_texts: Loader) -> None:
    result = load_texts(document("Tenant", "chat", "namespaces: {selector: {}}"))

    assert served(result).selecting_tenants[0].name == "chat"
    assert any("selects every namespace" in w for w in lines(result, Severity.WARNING))
