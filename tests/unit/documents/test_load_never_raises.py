# SPDX-License-Identifier: Apache-2.0
"""Whatever the texts, a load ends with a set or with problems, never with an exception."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.documents.facts import parse_facts
from policies.documents.kinds import LATER_KINDS, Kind
from policies.documents.load import LoadResult
from policies.documents.problems import has_errors
from policies.documents.source import SourceText
from policies.vendors import Catalog
from tests.unit.documents.loading import COMPLETE, Loader, document
from tests.unit.documents.test_facts import LIST, NOW
from tests.unit.documents.test_policytest import SPEC

FULL_POLICY = document(
    "GPUPolicy",
    "full",
    """
    order: 10
    match:
      tenants: [chat]
      labels: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: In, values: [d]}]}
      ownerKinds: [Job]
      when: [{name: one, expression: gpu.devices == 1}]
    variables: [{name: count, expression: object.spec.containers.size()}]
    rewrite: {profile: whole}
    exclusive: true
    validate:
    - {name: few, expression: variables.count < 3, message: many, messageExpression: '"x"'}
    enforcement: Enforce
    """,
)
FIT_POLICY = document(
    "GPUPolicy",
    "fit",
    """
    order: 5
    match: {labels: {matchLabels: {workload: inference}}}
    variables: [{name: stated, expression: '""'}]
    rewrite:
      fit:
        memory: {annotation: a.example/b, env: GPU, expression: variables.stated, default: 8Gi}
        candidates: [slice-4, h100-1g.10gb, whole]
        compute: {annotation: sluice.dev/gpu-compute}
        perContainer: true
    memoryLimit:
      fromFit: true
      minimumStrength: Process
      userValue: Override
      processes: {annotation: sluice.dev/gpu-processes}
    """,
)
EXEMPTION = document(
    "Exemption",
    "full",
    """
    policies: [full, fit]
    match: {tenants: [chat], namespaces: [chat], users: [x], labels: {matchLabels: {a: b}}}
    reason: x
    expiresAt: "2031-12-12T00:00:00Z"
    """,
)
POOL = document("GPUPool", "full", "nodes: {selector: {matchLabels: {pool: a100}}}")
FULL_PROFILE = document(
    "SharingProfile",
    "full",
    """
    mode: MIG
    mig: {profile: 1g.10gb}
    products: [NVIDIA-H100-80GB-HBM3]
    nodeSelector: {pool: shared}
    tolerations: [{key: a, operator: Equal, value: b, effect: NoExecute, tolerationSeconds: 5}]
    """,
)
FULL_TENANT = document(
    "Tenant",
    "full",
    """
    namespaces: {names: [a], selector: {matchLabels: {team: x}}}
    quota:
      gpus: {guarantee: 1.5, ceiling: 2}
      pools: {full: {guarantee: 0, ceiling: 8}}
      memory: {ceiling: 80Gi}
      resources: {nvidia.com/mig-1g.10gb: {ceiling: 3}}
    profiles: ["h100-*"]
    cohort: main
    priority: 5
    weight: 2
    lending: {enabled: true, idleAfter: 1h}
    minRuntime: 90s
    whenOverQuota: Deny
    """,
)
RECLAIM = document(
    "ReclaimPolicy",
    "full",
    """
    cohorts: [main]
    enabled: true
    notice: 2m
    maxGrace: 1h30m
    pdbTimeout: 10m
    afterPdbTimeout: Keep
    readmitAfter: 1m
    """,
)
SETTINGS = document(
    "Settings",
    "cluster",
    """
    mode: Observe
    budget: {perTenant: 4, perNode: 2, perCluster: 20, per: 10m}
    priorityThreshold: 100
    queue: {reserveAfter: 5m, releaseWithoutNodes: true, gangTimeout: 5m}
    """,
)
EVERYTHING = "---\n".join(
    [
        *(COMPLETE, FULL_POLICY, FIT_POLICY, FULL_PROFILE, FULL_TENANT, SETTINGS, EXEMPTION, POOL),
        RECLAIM,
        document("SharingProfile", "mps-8", "mode: MPS\nreplicas: 8\nshareWith: Cohort"),
        document("PolicyTest", "t", SPEC),
    ]
)
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all(EVERYTHING))

NAMES = st.sampled_from(
    [
        *Kind,
        *LATER_KINDS,
        "spec",
        "metadata",
        "name",
        "match",
        "when",
        "quota",
        "expression",
        "mode",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | NAMES
    | st.text(max_size=20)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)
RAW = st.binary(max_size=200)
# Time differs with what else the machine does; pytest's own timeout bounds it.
SLOW = settings(deadline=None)
YAML_LIKE = st.text(st.sampled_from("abk:-&*!|>'\"[]{}#%@`,? \t\n0.~<"), max_size=120)


def consistent(result: LoadResult) -> bool:
    return (result.policy_set is None) == has_errors(result.problems)


@SLOW
@given(st.lists(RAW, max_size=3))
def test_any_bytes_give_a_set_or_errors(load_texts: Loader, texts: list[bytes]) -> None:
    assert consistent(load_texts(*texts))


@SLOW
@given(YAML_LIKE)
def test_any_yaml_like_text_gives_a_set_or_errors(load_texts: Loader, text: str) -> None:
    assert consistent(load_texts(text))
    assert consistent(load_texts(f"{EVERYTHING}---\n{text}"))


@SLOW
@given(JSON, st.sampled_from(list(Kind)))
def test_any_value_in_any_kind_gives_a_set_or_errors(
    load_texts: Loader, value: object, kind: Kind
) -> None:
    text = {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}}

    assert consistent(load_texts(json.dumps({**text, "spec": value})))
    assert consistent(load_texts(json.dumps({**text, "metadata": value, "spec": {}})))


@settings(SLOW, max_examples=200)
@given(st.data())
def test_any_mutation_of_valid_documents_gives_a_set_or_errors(
    load_texts: Loader, data: st.DataObject
) -> None:
    changed = [mutated(item, data.draw) for item in DOCUMENTS]

    assert consistent(load_texts("\n---\n".join(json.dumps(item) for item in changed)))


@SLOW
@given(st.integers(0, len(EVERYTHING)), st.integers(0, 40), RAW)
def test_any_edit_of_a_valid_file_gives_a_set_or_errors(
    load_texts: Loader, start: int, length: int, insert: bytes
) -> None:
    raw = EVERYTHING.encode()

    assert consistent(load_texts(raw[:start] + insert + raw[start + length :]))


def mutated(value: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    """Return the value with one part of it, chosen at random, replaced, dropped or doubled."""
    if draw(st.integers(0, 5)) == 0:
        return draw(JSON)
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value)))
        match draw(st.integers(0, 9)):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, draw(NAMES | st.text(max_size=5)): value[key]}
            case _:
                return {**value, key: mutated(value[key], draw)}
    if isinstance(value, list) and value:
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], mutated(value[index], draw), *value[index:]]
    return value


@SLOW
@given(RAW | YAML_LIKE.map(str.encode))
def test_any_bytes_are_facts_or_errors(catalog: Catalog, text: bytes) -> None:
    for raw in (text, LIST.encode() + text):
        facts, problems = parse_facts(SourceText("f.yaml", raw), catalog=catalog, now=NOW)
        assert (facts is None) == has_errors(problems)


@settings(SLOW)
@given(st.data())
def test_any_mutation_of_facts_gives_facts_or_errors(catalog: Catalog, data: st.DataObject) -> None:
    value = json.loads(json.dumps(yaml.safe_load(LIST), default=str))
    raw = json.dumps(mutated(value, data.draw)).encode()
    facts, problems = parse_facts(SourceText("f.yaml", raw), catalog=catalog, now=NOW)

    assert (facts is None) == has_errors(problems)


def test_what_is_mutated_is_valid_before(load_texts: Loader) -> None:
    assert load_texts(EVERYTHING).policy_set is not None
    assert load_texts("\n---\n".join(json.dumps(d) for d in DOCUMENTS)).policy_set is not None


@pytest.mark.parametrize("where", ["spec.match", "spec", "metadata"])
def test_deeply_nested_values_are_no_traceback(load_texts: Loader, where: str) -> None:
    deep = "[" * 60 + "]" * 60
    text = {
        "spec.match": document("GPUPolicy", "p", f"match: {deep}"),
        "spec": document("GPUPolicy", "p", f"x: {deep}").replace("  x:", "  - "),
        "metadata": f"apiVersion: sluice.dev/v1alpha1\nkind: Tenant\nmetadata: {deep}\n",
    }[where]

    assert load_texts(text).policy_set is None
