# SPDX-License-Identifier: Apache-2.0
"""A Tenant document becomes namespaces, exact milli-GPU, allowed profiles and the CEL variable."""

import pytest

from policies.documents.problems import Severity
from policies.model.labels import Expression, Operator
from policies.model.tenant import DEFAULT_POOL, Lending, Quota, Tenant, WhenOverQuota
from tests.unit.documents.loading import Loader, document, errors, lines, served


def tenant(load_texts: Loader, spec: str) -> Tenant:
    return served(load_texts(document("Tenant", "chat", spec))).tenants["chat"]


def pool(name: str) -> str:
    return document("GPUPool", name, f"nodes: {{selector: {{matchLabels: {{pool: {name}}}}}}}")


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


def test_a_quota_is_of_each_pool_that_is_written(load_texts: Loader) -> None:
    spec = """
        namespaces: {names: [a]}
        quota:
          gpus: {guarantee: 2}
          pools:
            a100: {guarantee: 0.5, ceiling: 8}
            h100: {ceiling: 1}
        """
    texts = [document("Tenant", "chat", spec), pool("a100"), pool("h100"), pool("l40s")]
    found = served(load_texts(*texts)).tenants["chat"]

    assert found.pools == {
        DEFAULT_POOL: Quota(2000, None),
        "a100": Quota(500, 8000),
        "h100": Quota(None, 1000),
    }
    assert found.quota_of("l40s") == Quota(0, 0)
    assert found.cel["quota"] == {
        "gpus": {"guarantee": 2.0},
        "pools": {
            "a100": {"guarantee": 0.5, "ceiling": 8.0},
            "h100": {"ceiling": 1.0},
        },
    }


@pytest.mark.parametrize(
    ("written", "mib"),
    [("1280Gi", 1280 * 1024), ("1G", 953), ("0", 0), ("'1048576'", 1), ("1Ei", 2**40)],
)
def test_a_ceiling_of_memory_is_in_mib_and_never_overstated(
    load_texts: Loader, written: str, mib: int
) -> None:
    spec = f"namespaces: {{names: [a]}}\nquota: {{memory: {{ceiling: {written}}}}}"
    found = tenant(load_texts, spec)

    assert found.memory_mib == mib
    assert found.pools == {}


def test_a_resource_has_a_ceiling_of_whole_devices(load_texts: Loader) -> None:
    resources = "{nvidia.com/mig-1g.10gb: {ceiling: 56}, nvidia.com/gpu: {ceiling: 0}}"
    spec = f"namespaces: {{names: [a]}}\nquota: {{resources: {resources}}}"

    found = tenant(load_texts, spec).resources

    assert found == {"nvidia.com/mig-1g.10gb": 56, "nvidia.com/gpu": 0}


def test_what_stands_between_tenants_is_read(load_texts: Loader) -> None:
    spec = """
        namespaces: {names: [a]}
        priority: -5
        weight: 3
        lending: {enabled: false, idleAfter: 1h30m}
        minRuntime: 1h
        whenOverQuota: Deny
        """
    found = tenant(load_texts, spec)

    assert (found.priority, found.weight) == (-5, 3)
    assert found.lending == Lending(enabled=False, idle_after_seconds=5400)
    assert found.min_runtime_seconds == 3600
    assert found.when_over_quota is WhenOverQuota.DENY


def test_a_resource_that_no_vendor_knows_is_pointed_out(load_texts: Loader) -> None:
    spec = "namespaces: {names: [a]}\nquota: {resources: {nvidea.com/gpu: {ceiling: 1}}}"
    found = lines(load_texts(document("Tenant", "chat", spec)), Severity.WARNING)

    expected = (
        'a.yaml:6:23: warning: Tenant/chat: spec.quota.resources["nvidea.com/gpu"]: '
        '"nvidea.com/gpu" is no known GPU resource: this bounds nothing; '
        'did you mean "nvidia.com/gpu"?'
    )
    assert expected in found


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
        "quota": {"gpus": {"guarantee": 1.5}, "pools": {}},
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
        (
            "namespaces: {names: [a]}\nquota: {pools: {a10: {ceiling: 1}}}",
            (
                '6:19: error: Tenant/chat: spec.quota.pools.a10: there is no pool "a10"; '
                'did you mean "a100"?'
            ),
        ),
        (
            "namespaces: {names: [a]}\nquota: {pools: {'': {ceiling: 1}}}",
            '6:19: error: Tenant/chat: spec.quota.pools[""]: there is no pool ""',
        ),
        (
            "namespaces: {names: [a]}\nquota: {pools: {a100: {guarantee: 2, ceiling: 1}}}",
            (
                "6:37: error: Tenant/chat: spec.quota.pools.a100.guarantee: "
                "a guarantee of 2 is more than the ceiling 1"
            ),
        ),
        (
            "namespaces: {names: [a]}\nquota: {pools: {a100: {ceilling: 1}}}",
            'spec.quota.pools.a100.ceilling: unknown field; did you mean "ceiling"?',
        ),
        (
            "namespaces: {names: [a]}\nquota: {resources: {nvidia.com/gpu: {}}}",
            'spec.quota.resources["nvidia.com/gpu"].ceiling: is missing',
        ),
        (
            "namespaces: {names: [a]}\nquota: {resources: {nvidia.com/gpu: {ceiling: 1.5}}}",
            "ceiling: must be a whole number, is 1.5",
        ),
        (
            "namespaces: {names: [a]}\nquota: {memory: {ceiling: 1280GB}}",
            'quota.memory.ceiling: "1280GB" is no quantity; write 1280G',
        ),
        (
            "namespaces: {names: [a]}\nquota: {memory: {ceiling: 1280}}",
            "quota.memory.ceiling: 1280 is less than 1 MiB; write a unit, such as 1280Gi",
        ),
        (
            "namespaces: {names: [a]}\nquota: {memory: {ceiling: -1Gi}}",
            'quota.memory.ceiling: must be at least 0, is "-1Gi"',
        ),
        (
            "namespaces: {names: [a]}\nquota: {memory: {ceiling: 2Ei}}",
            'quota.memory.ceiling: "2Ei" is more memory than any cluster has',
        ),
        ("namespaces: {names: [a]}\nweight: 0", "spec.weight: must be at least 1, is 0"),
        ("namespaces: {names: [a]}\nweight: 1001", "spec.weight: must be at most 1000, is 1001"),
        ("namespaces: {names: [a]}\nweight: 1.5", "spec.weight: must be a whole number, is 1.5"),
        (
            "namespaces: {names: [a]}\npriority: 9999999",
            "spec.priority: must be at most 1000000, is 9999999",
        ),
        (
            "namespaces: {names: [a]}\nwhenOverQuota: deny",
            'must be one of Queue, Deny; is "deny"; did you mean "Deny"?',
        ),
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
    found = errors(load_texts(document("Tenant", "chat", spec), pool("a100")))

    assert len(found) == 1, found
    assert error in found[0]


def test_a_selector_that_takes_every_namespace_is_pointed_out(load_texts: Loader) -> None:
    result = load_texts(document("Tenant", "chat", "namespaces: {selector: {}}"))

    assert served(result).selecting_tenants[0].name == "chat"
    assert any("selects every namespace" in w for w in lines(result, Severity.WARNING))
