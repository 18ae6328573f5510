# SPDX-License-Identifier: Apache-2.0
"""Which form each GPU container gets, and how many shares of it."""

import pytest

from policies.model.reasons import Reason
from tests.support.builders import (
    EXCLUSIVE,
    GPU,
    MIG,
    REFERENCE,
    SHARED,
    Json,
    container,
    mutate,
    pod,
    policy_set,
    rewritten,
)
from tests.support.pods import containers_of, gpus_of

MULTIPLE = policy_set(REFERENCE.replace("replicas: 4,", "replicas: 4, allowMultiple: true,"))


def _with_names(**amounts: str) -> Json:
    names = {"whole": GPU, "shared": SHARED, "mig": MIG}
    listed = {names[key]: amount for key, amount in amounts.items()}
    return container(resources={"limits": listed, "requests": listed})


def test_whole_devices_become_what_the_first_matching_policy_gives() -> None:
    decision = mutate(pod(namespace="vision"))

    assert (decision.policy, decision.profile, decision.given) == (
        "vision-mig",
        "h100-1g.10gb",
        {MIG: 1},
    )


def test_every_container_is_rewritten_in_both_maps() -> None:
    found = pod(
        container("a", "1"),
        container("b", "1"),
        initContainers=[container("init", "1"), container("proxy", "1", restartPolicy="Always")],
    )
    new = rewritten(found)

    assert [gpus_of(c) for c in containers_of(new)] == [
        {"limits": {SHARED: "1"}, "requests": {SHARED: "1"}}
    ] * 4
    assert mutate(found).given == {SHARED: 3}
    assert mutate(found).charge_milli == 750


def test_a_share_that_one_allowed_profile_gives_stays_and_is_pinned() -> None:
    decision = mutate(pod(container(gpus="1", resource=SHARED)))

    assert decision.allowed
    assert (decision.policy, decision.profile) == (None, "slice-4")
    assert decision.charge_milli == 250
    assert {op["path"] for op in decision.patch} >= {"/spec/nodeSelector", "/spec/schedulingGates"}


def test_a_share_that_several_allowed_profiles_give_is_refused() -> None:
    decision = mutate(pod(container(gpus="1", resource=MIG), namespace="lab"))

    assert decision.reasons == (Reason.PROFILE_NOT_ALLOWED,)
    assert "may be any of" in decision.message


def test_a_share_of_a_profile_that_the_tenant_may_not_use_is_refused() -> None:
    decision = mutate(pod(container(gpus="1", resource=MIG)))

    assert decision.reasons == (Reason.PROFILE_NOT_ALLOWED,)
    assert "tenant chat may not use nvidia.com/mig-1g.10gb: it may use slice-4" in decision.message


def test_a_policy_does_not_give_a_profile_that_the_tenant_may_not_use() -> None:
    decision = mutate(pod(annotations={EXCLUSIVE: "true"}))

    assert decision.reasons == (Reason.PROFILE_NOT_ALLOWED,)
    assert "profile whole (policy training-exclusive)" in decision.message


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("nvidia.com/GPU", "did you mean nvidia.com/gpu?"),
        ("nvidia.com/gpus", "did you mean nvidia.com/gpu?"),
        ("requests.nvidia.com/gpu", "did you mean nvidia.com/gpu?"),
        ("nvidia.com.gpu", "did you mean nvidia.com/gpu?"),
        ("alpha.kubernetes.io/nvidia-gpu", ": ask for nvidia.com/gpu"),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", ": ask for nvidia.com/gpu"),
        (f"nvidia.com/{'x' * 3_000_000}", ": ask for nvidia.com/gpu"),
    ],
)
def test_a_gpu_name_that_nothing_gives_is_refused_with_a_known_one(
    name: str, suggestion: str
) -> None:
    decision = mutate(pod(container(gpus="1", resource=name)))

    assert decision.reasons == (Reason.UNKNOWN_GPU_RESOURCE,)
    assert suggestion in decision.message


@pytest.mark.parametrize(("count", "looked_up"), [(16, True), (17, False)])
def test_likely_names_are_looked_up_where_there_are_few(count: int, looked_up: bool) -> None:
    names = {f"nvidia.com/gpus{index}": "1" for index in range(count)}
    decision = mutate(pod(container(resources={"limits": names})))

    assert len(decision.violations) == count
    assert ("did you mean nvidia.com/gpu" in decision.message) is looked_up


def test_where_no_policy_rewrites_the_pod_is_refused() -> None:
    decision = mutate(pod(container(gpus="1", resource="amd.com/gpu"), namespace="lab"))

    assert decision.reasons == (Reason.NO_POLICY,)
    assert "container main: no policy gives amd.com/gpu" in decision.message


@pytest.mark.parametrize(
    "asking",
    [
        _with_names(whole="2"),
        _with_names(shared="2"),
        _with_names(whole="1", shared="1"),
    ],
    ids=["by the device's name", "by the share's name", "by both names"],
)
def test_more_shares_than_one_are_refused_by_whatever_names(asking: Json) -> None:
    decision = mutate(pod(asking))

    assert decision.reasons == (Reason.MULTIPLE_SHARES,)
    assert "container main: asks for 2 of slice-4" in decision.message


@pytest.mark.parametrize(
    "asking", [_with_names(whole="2"), _with_names(whole="1", shared="1")], ids=["one", "two"]
)
@pytest.mark.parametrize("section", ["containers", "initContainers"])
def test_several_shares_are_given_and_charged_where_the_profile_says_so(
    asking: Json, section: str
) -> None:
    found = (
        pod(asking) if section == "containers" else pod(container("app"), initContainers=[asking])
    )
    decision = mutate(found, MULTIPLE)

    assert decision.given == {SHARED: 2}
    assert decision.charge_milli == 500


def test_shares_of_several_containers_are_no_multiple() -> None:
    assert mutate(pod(container("a", "1"), container("b", "1"))).allowed


def test_a_zero_stays_as_it_is_beside_what_is_given() -> None:
    found = pod(_with_names(whole="1", mig="0"))

    assert gpus_of(rewritten(found)["spec"]["containers"][0])["limits"] == {SHARED: "1", MIG: "0"}
    assert mutate(found).given == {SHARED: 1}


def test_whole_devices_are_exclusive_only_where_the_policy_says_so() -> None:
    whole = pod(container(gpus="8"), namespace="lab", annotations={EXCLUSIVE: "true"})
    decision = mutate(whole)

    assert (decision.profile, decision.exclusive) == ("whole", True)
    assert decision.given == {GPU: 8}
    assert not mutate(pod()).exclusive
