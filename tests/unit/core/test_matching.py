# SPDX-License-Identifier: Apache-2.0
"""Which policies speak of a pod, what they give, and what their rules say."""

import json
from typing import Any

import pytest

from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from tests.support.builders import (
    EXCLUSIVE,
    GPU,
    MIG,
    REFERENCE,
    SHARED,
    container,
    facts,
    mutate,
    pod,
    policy_set,
    rewritten,
    validate,
)


def _with(*specs: str) -> PolicySet:
    documents = (
        "apiVersion: sluice.dev/v1alpha1\nkind: GPUPolicy\n"
        f"metadata: {{name: p{index}}}\nspec: {spec}\n"
        for index, spec in enumerate(specs)
    )
    return policy_set("\n---\n".join([REFERENCE, *documents]))


def _rule(expression: str, **more: str) -> str:
    return json.dumps({"order": 1, "validate": [{"name": "r", "expression": expression, **more}]})


@pytest.mark.parametrize(
    ("match", "parts", "matches"),
    [
        ("{tenants: [research]}", {}, True),
        ("{tenants: [chat, vision]}", {}, False),
        ("{namespaces: [lab]}", {}, True),
        ("{namespaces: [chat]}", {}, False),
        ("{labels: {matchLabels: {app: llm}}}", {"labels": {"app": "llm"}}, True),
        ("{labels: {matchLabels: {app: llm}}}", {"labels": {"app": "x"}}, False),
        ("{labels: {matchLabels: {app: llm}}}", {}, False),
        ("{labels: {matchExpressions: [{key: app, operator: DoesNotExist}]}}", {}, True),
        (
            "{ownerKinds: [Job]}",
            {"ownerReferences": [{"kind": "Job", "controller": True}]},
            True,
        ),
        ("{ownerKinds: [Job]}", {"ownerReferences": [{"kind": "Job"}]}, False),
        ("{ownerKinds: [Job]}", {}, False),
        ("{when: [{name: a, expression: 'gpu.devices == 1'}]}", {}, True),
        ("{when: [{name: a, expression: 'gpu.devices > 1'}]}", {}, False),
        (
            "{when: [{name: a, expression: 'true'}, {name: b, expression: 'false'}]}",
            {},
            False,
        ),
        ("{}", {}, True),
    ],
)
def test_a_policy_speaks_of_a_pod_if_all_of_its_match_holds(
    match: str, parts: dict[str, Any], matches: bool
) -> None:
    policies = _with(f"{{order: 1, match: {match}, rewrite: {{profile: h100-3g.40gb}}}}")
    decision = mutate(pod(namespace="lab", **parts), policies)

    assert decision.profile == ("h100-3g.40gb" if matches else "slice-4")
    assert ("p0" in decision.matched) is matches


def test_the_first_policy_in_order_then_name_that_rewrites_does_so() -> None:
    policies = _with(
        "{order: 5, rewrite: {profile: h100-3g.40gb}}",
        "{order: 5, rewrite: {profile: h100-2g.20gb}}",
        "{order: 4, validate: [{name: r, expression: 'true'}]}",
    )
    decision = mutate(pod(namespace="lab"), policies)

    assert decision.matched == ("p2", "p0", "p1", "no-raw-gpu")
    assert (decision.policy, decision.profile) == ("p0", "h100-3g.40gb")


def test_a_policy_of_another_vendors_form_is_passed_over() -> None:
    amd = """
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: amd-whole}
spec: {mode: Exclusive, vendor: amd}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: amd}
spec: {order: 1, rewrite: {profile: amd-whole}}
"""
    policies = policy_set(REFERENCE + amd)

    assert mutate(pod(namespace="lab"), policies).profile == "slice-4"
    asking = pod(container(gpus="2", resource="amd.com/gpu"), namespace="lab")
    assert mutate(asking, policies).profile == "amd-whole"


@pytest.mark.parametrize("enforcement", ["Warn", "Audit"])
def test_a_policy_on_trial_gives_nothing(enforcement: str) -> None:
    policies = _with(
        f"{{order: 1, rewrite: {{profile: h100-3g.40gb}}, enforcement: {enforcement}}}"
    )
    decision = mutate(pod(namespace="lab"), policies)

    assert decision.profile == "slice-4"
    would = [w for w in decision.warnings if "p0 (Warn) would give profile h100-3g.40gb" in w]
    assert len(would) == (1 if enforcement == "Warn" else 0)


def test_the_rules_of_every_matching_policy_hold() -> None:
    policies = _with(
        _rule("gpu.milli < 1"), _rule("object.spec.containers.size() > 9"), _rule("true")
    )
    decision = mutate(pod(), policies)

    assert [v.policy for v in decision.violations] == ["p0", "p1"]
    assert decision.reasons == (Reason.POLICY_VIOLATION,)
    assert "p0/r: failed expression: gpu.milli < 1" in decision.message


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"message": "ask less"}, "p0/r: ask less"),
        ({"messageExpression": '"asks " + string(gpu.devices)'}, "p0/r: asks 1"),
        (
            {"message": "ask less", "messageExpression": 'object.metadata.labels["x"]'},
            "p0/r: ask less",
        ),
        ({"message": "ask less", "messageExpression": '" "'}, "p0/r: ask less"),
        ({"message": "ask less", "messageExpression": r'"a\nb"'}, "p0/r: ask less"),
    ],
    ids=["fixed", "computed", "not computable", "empty", "of two lines"],
)
def test_a_rule_says_its_message_or_computes_it(message: dict[str, str], text: str) -> None:
    assert text in mutate(pod(), _with(_rule("false", **message))).message


@pytest.mark.parametrize("where", ["when", "validate"])
def test_an_expression_that_has_no_value_refuses(where: str) -> None:
    failing = "object.metadata.labels['absent'] == 'x'"
    spec = {
        "when": f'{{order: 1, match: {{when: [{{name: c, expression: "{failing}"}}]}}, '
        "rewrite: {profile: slice-4}}",
        "validate": f'{{order: 1, validate: [{{name: c, expression: "{failing}"}}]}}',
    }[where]
    decision = mutate(pod(labels={"a": "b"}), _with(spec))

    assert decision.reasons == (Reason.POLICY_ERROR,)
    assert f"p0/{where} c could not be evaluated" in decision.message


def test_a_rule_on_trial_warns_or_only_records() -> None:
    rule = {"order": 1, "validate": [{"name": "r", "expression": "false", "message": "no"}]}
    warn, audit = (
        mutate(pod(), _with(json.dumps({**rule, "enforcement": mode})))
        for mode in ("Warn", "Audit")
    )

    assert warn.allowed
    assert warn.warnings[-1] == ("sluice: [PolicyViolation] p0/r: no (policy p0 only warns)")
    assert audit.allowed
    assert len(audit.warnings) == 1
    assert audit.reasons == warn.reasons == (Reason.POLICY_VIOLATION,)


def test_rules_see_what_is_given_and_conditions_what_was_asked() -> None:
    policies = _with(
        """
  order: 1
  match: {when: [{name: asked, expression: 'gpu.milli == 2000 && gpu.mode == ""'}]}
  validate:
  - name: given
    expression: >-
      gpu.milli == 250 && gpu.devices == 2 && gpu.memory == 19968 && gpu.mode == "MIG"
      && !gpu.exclusive && gpu.containers.all(c, c.resource == "nvidia.com/mig-1g.10gb")
      && gpu.containers.map(c, c.kind) == ["Sidecar", "App"]
"""
    )
    found = pod(
        container("a", "1"),
        initContainers=[container("b", "1", restartPolicy="Always")],
        namespace="vision",
    )

    assert mutate(found, policies).allowed, mutate(found, policies).message
    assert mutate(found, policies).given == {MIG: 2}


def test_rules_see_the_original_pod_in_both_passes() -> None:
    policies = _with(
        _rule(
            "object.spec.containers[0].resources.limits.size() == 1"
            ' && object.spec.containers[0].resources.limits.exists(k, k == "nvidia.com/gpu")'
            " && !has(object.spec.schedulingGates) && !has(object.spec.nodeSelector)"
            " && !has(object.metadata.annotations)"
        )
    )
    new = rewritten(pod(), policies)

    assert SHARED in new["spec"]["containers"][0]["resources"]["limits"]
    assert validate(new, policies).allowed


def test_rules_see_namespace_tenant_request_and_variables() -> None:
    policies = _with(
        """
  order: 1
  variables: [{name: team, expression: 'namespaceObject.metadata.labels["team"]'}]
  validate:
  - name: sees
    expression: >-
      variables.team == tenant.name && namespaceObject.metadata.name == "lab"
      && tenant.quota.gpus.ceiling == 16.0 && request.operation == "CREATE"
"""
    )
    raw = {"operation": "CREATE", "uid": "1", "namespace": "lab"}
    known = facts({"lab": {"team": "research"}})

    assert mutate(pod(namespace="lab"), policies, raw=raw, facts=known).allowed


def test_what_is_asked_counts_whole_devices_only_once_they_are_whole() -> None:
    policies = _with(
        """
  order: 1
  match: {when: [{name: seen, expression: 'gpu.devices == 2 && gpu.milli == 1000'}]}
  validate: [{name: never, expression: "false", message: seen}]
"""
    )
    found = pod(container("a", "1"), container("b", "1", resource=SHARED))

    assert "p0/never: seen" in mutate(found, policies).message
    assert GPU in mutate(found, policies).asked


def test_a_pod_above_the_ceiling_is_refused_at_once() -> None:
    policies = policy_set(REFERENCE.replace("guarantee: 2, ceiling: 4", "ceiling: 0.5"))
    three = pod(*(container(name, "1") for name in "abc"))
    decision = mutate(three, policies)

    assert decision.reasons == (Reason.OVER_CEILING,)
    assert decision.message.endswith(
        "exceeded quota: tenant chat has a ceiling of 0.5 GPUs, this pod asks 0.75: "
        "ask for at most 0.5"
    )
    assert decision.charge_milli == 750
    assert mutate(pod(container("a", "1"), container("b", "1")), policies).allowed


def test_exclusive_work_above_the_guarantee_is_refused_at_once() -> None:
    policies = policy_set(
        REFERENCE.replace("guarantee: 8, ceiling: 16", "guarantee: 4, ceiling: 16")
    )
    asked: dict[str, Any] = {"annotations": {EXCLUSIVE: "true"}, "namespace": "lab"}
    decision = mutate(pod(container(gpus="5"), **asked), policies)

    assert decision.reasons == (Reason.OVER_GUARANTEE,)
    assert decision.message.endswith("of tenant research, 4 GPUs; this pod asks 5")
    assert mutate(pod(container(gpus="4"), **asked), policies).allowed


def test_a_tenant_without_a_ceiling_has_none() -> None:
    quota = "quota: {gpus: {guarantee: 8}}"
    policies = policy_set(REFERENCE.replace("quota: {gpus: {guarantee: 8, ceiling: 16}}", quota))
    found = pod(
        container(gpus="8"), namespace="lab", annotations={"nvidia.com/gpu-exclusive": "true"}
    )

    assert mutate(found, policies).allowed


@pytest.mark.parametrize("quota", ["", "quota: {gpus: {ceiling: 16}}"])
def test_a_tenant_without_a_guarantee_has_no_exclusive_gpus(quota: str) -> None:
    policies = policy_set(REFERENCE.replace("quota: {gpus: {guarantee: 8, ceiling: 16}}", quota))
    found = pod(
        container(gpus="1"), namespace="lab", annotations={"nvidia.com/gpu-exclusive": "true"}
    )
    decision = mutate(found, policies)

    assert decision.reasons == (Reason.OVER_GUARANTEE,)
    assert decision.message.endswith("of tenant research, 0 GPUs; this pod asks 1")
