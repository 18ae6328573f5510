# SPDX-License-Identifier: Apache-2.0
"""How each pass answers, and in what words."""

from copy import deepcopy

import pytest

from policies.model.facts import NodeFacts
from policies.model.keys import DECISION
from policies.model.reasons import Reason
from tests.support.builders import (
    EXCLUSIVE,
    GPU,
    REFERENCE,
    SHARED,
    Json,
    container,
    facts,
    mutate,
    pod,
    policy_set,
    rewritten,
    validate,
)

UNRENAMED = policy_set(
    REFERENCE.replace("replicas: 4, products", f"replicas: 4, resource: {GPU}, products")
)
OTHER = policy_set(REFERENCE.replace("replicas: 4", "replicas: 8"))


def test_the_mutating_pass_answers_with_the_patch_and_says_what_it_does() -> None:
    decision = mutate(pod(namespace="vision"))

    assert decision.patch
    assert " ".join(decision.warnings) == (
        "sluice: nvidia.com/gpu 1 -> nvidia.com/mig-1g.10gb 1 (9.8 GiB usable, hardware limit) "
        "by policy vision-mig"
    )


def test_the_validating_pass_says_nothing_twice_and_changes_nothing() -> None:
    decision = validate(rewritten(pod()))

    assert decision.allowed
    assert (decision.patch, decision.warnings) == ((), ())
    assert (decision.policy, decision.charge_milli, decision.asked) == ("no-raw-gpu", 250, {GPU: 1})


def test_a_pod_that_the_first_pass_never_saw_is_refused_with_what_it_lacks() -> None:
    decision = validate(pod())

    assert decision.reasons == (Reason.REWRITE_MISSING,)
    assert "Sluice's mutating webhook was not called" in decision.message
    for place in ("spec.containers[main].resources", "spec.schedulingGates", "spec.tolerations"):
        assert place in decision.message


def test_a_pod_that_was_altered_is_refused_with_where() -> None:
    new = rewritten(pod(container("a", "1"), container("b", "1")))
    new["spec"]["containers"][1]["resources"]["limits"] = {GPU: "1"}
    decision = validate(new)

    assert decision.reasons == (Reason.REWRITE_MISSING,)
    assert decision.message == (
        "sluice: [RewriteMissing] another webhook or client has altered what policy demands: "
        "spec.containers[b].resources.limits"
    )


def test_a_long_list_of_places_is_cut() -> None:
    found = pod(*(container(f"c{index}", "1") for index in range(9)))

    assert validate(found).message.count("spec.containers[") == 4
    assert ", ... differ" in validate(found).message


def test_a_policy_change_between_the_passes_is_said_to_be_one() -> None:
    decision = validate(rewritten(pod()), OTHER)

    assert decision.reasons == (Reason.REWRITE_MISSING,)
    assert "policies have changed since the pod was rewritten" in decision.message
    assert decision.message.endswith("Try again")


def test_a_policy_change_that_demands_the_same_lets_the_pod_through() -> None:
    reworded = policy_set(f"{REFERENCE}  description: The same as before.\n")
    new = rewritten(pod())

    assert reworded.generation != policy_set().generation
    assert validate(new, reworded).allowed
    assert mutate(new, reworded).patch[0]["path"] == (
        "/metadata/annotations/state.sluice.dev~1decision"
    )


def test_whole_gpus_need_no_warning_since_they_are_what_was_asked_for() -> None:
    found = pod(container(gpus="8"), namespace="lab", annotations={EXCLUSIVE: "true"})

    assert mutate(found).warnings == ()


def test_a_share_that_goes_by_the_whole_devices_name_is_warned_of() -> None:
    decision = mutate(pod(), UNRENAMED)

    assert decision.given == {GPU: 1}
    assert " ".join(decision.warnings) == (
        "sluice: nvidia.com/gpu 1 -> nvidia.com/gpu 1 (1/4 of a GPU, no memory limit) "
        "by policy no-raw-gpu"
    )


def test_the_same_rewrite_of_several_containers_is_said_once() -> None:
    assert len(mutate(pod(container("a", "1"), container("b", "1"))).warnings) == 1


SHARING = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/gpu.replicas": "4",
}


@pytest.mark.parametrize(
    "node",
    [
        NodeFacts("n1", SHARING, {GPU: 16}),
        NodeFacts("n1", SHARING, {SHARED: 0}),
        NodeFacts("n1", {**SHARING, "nvidia.com/gpu.replicas": "8"}, {SHARED: 8}),
        NodeFacts("n1", {**SHARING, "nvidia.com/gpu.product": "NVIDIA-L40S"}, {SHARED: 4}),
        None,
    ],
    ids=["not renamed", "none left", "other replicas", "other model", "no node at all"],
)
def test_a_form_that_no_node_offers_is_warned_of_and_not_replaced(node: NodeFacts | None) -> None:
    decision = mutate(pod(), facts=facts(nodes=[node] if node else []))

    assert decision.allowed
    assert decision.given == {SHARED: 1}
    assert decision.warnings[1] == (
        "sluice: no node offers nvidia.com/gpu.shared as profile slice-4 needs it: "
        "the pod will wait"
    )


@pytest.mark.parametrize("product", ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3-SHARED"])
def test_a_form_that_a_node_offers_is_not_warned_of(product: str) -> None:
    labels = {**SHARING, "nvidia.com/gpu.product": product}

    assert (
        len(mutate(pod(), facts=facts(nodes=[NodeFacts("n1", labels, {SHARED: 4})])).warnings) == 1
    )


def test_a_decision_on_stale_facts_says_so() -> None:
    stale = facts()
    for found in (pod(), pod(container()), pod(namespace="other")):
        given = type(stale)(stale.cluster, stale.now, stale_seconds=90)
        assert mutate(found, facts=given).stale_seconds == 90
    assert mutate(pod()).stale_seconds is None


def test_a_dry_run_gets_the_same_answer() -> None:
    assert mutate(pod(), dry_run=True) == mutate(pod())


def test_a_pod_without_gpus_is_not_counted_as_one_that_touches_them() -> None:
    for found in (pod(container()), pod(container(), namespace="other")):
        assert not mutate(found).touches_gpus
    assert mutate(pod()).touches_gpus
    assert mutate(pod(container(gpus="0"))).touches_gpus


def test_a_copied_pod_is_rewritten_as_if_its_user_had_written_the_original() -> None:
    copied = rewritten(pod())
    copied["metadata"]["namespace"] = "vision"
    new = rewritten(copied)

    assert new == rewritten(pod(namespace="vision"))


def test_a_claim_does_not_widen_what_policy_gives() -> None:
    new: Json = rewritten(pod())
    forged = deepcopy(new)
    annotations = forged["metadata"]["annotations"]
    annotations[DECISION] = annotations[DECISION].replace('"nvidia.com/gpu":"1"', f'"{GPU}":"8"')

    assert mutate(forged).reasons == (Reason.MULTIPLE_SHARES,)
    assert validate(forged).reasons == (Reason.MULTIPLE_SHARES,)
