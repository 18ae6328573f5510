# SPDX-License-Identifier: Apache-2.0
"""Debug containers and resizes of running pods."""

from copy import deepcopy
from typing import Any

import pytest

from policies.model.decision import Decision
from policies.model.keys import VISIBLE_DEVICES, VOID
from policies.model.reasons import Reason
from policies.model.request import Operation, Phase
from tests.support.builders import SHARED, Json, container, mutate, patched, pod, rewritten

IMAGE = {"name": VISIBLE_DEVICES, "value": VOID}
RUNNING = rewritten(pod())
PLAIN = pod(container())


def _debugged(old: Json, *containers: Json) -> Json:
    new = deepcopy(old)
    new["spec"]["ephemeralContainers"] = list(containers)
    return new


def _debug(new: Json, old: Json = RUNNING, phase: Phase = Phase.MUTATE) -> Decision:
    return mutate(
        new,
        phase=phase,
        operation=Operation.UPDATE,
        subresource="ephemeralcontainers",
        old_object=old,
    )


@pytest.mark.parametrize(
    "env", [None, [], [{"name": VISIBLE_DEVICES, "value": "all"}], [{"name": "A", "value": "1"}]]
)
def test_a_debug_container_is_made_to_see_no_device(env: Any) -> None:
    new = _debugged(RUNNING, container("dbg", env=env))
    after = patched(new, _debug(new))

    assert IMAGE in after["spec"]["ephemeralContainers"][0]["env"]
    assert _debug(after).patch == ()
    assert _debug(after, phase=Phase.VALIDATE).allowed


def test_a_debug_container_that_may_see_devices_is_refused() -> None:
    new = _debugged(RUNNING, container("dbg"), container("second", env=[IMAGE]))
    decision = _debug(new, phase=Phase.VALIDATE)

    assert decision.reasons == (Reason.REWRITE_MISSING,)
    assert "debug container dbg lacks NVIDIA_VISIBLE_DEVICES=void" in decision.message
    assert "second" not in decision.message


def test_containers_that_are_there_already_are_let_be() -> None:
    old = _debugged(RUNNING, container("old", securityContext={"privileged": True}))
    new = _debugged(RUNNING, *old["spec"]["ephemeralContainers"], container("dbg", env=[IMAGE]))

    for phase in Phase:
        decision = _debug(new, old, phase)
        assert decision.allowed
        assert decision.patch == ()


@pytest.mark.parametrize(
    "security", [{"privileged": True}, {"capabilities": {"add": ["SYS_ADMIN"]}}]
)
def test_a_debug_container_beside_a_gpu_may_not_reach_its_device(security: Json) -> None:
    new = _debugged(RUNNING, container("dbg", env=[IMAGE], securityContext=security))

    for phase in Phase:
        assert _debug(new, phase=phase).reasons == (Reason.HOST_ACCESS,)


def test_a_pod_without_gpus_may_be_debugged_with_all_privileges() -> None:
    new = _debugged(PLAIN, container("dbg", env=[IMAGE], securityContext={"privileged": True}))

    assert _debug(new, PLAIN, Phase.VALIDATE).allowed


def test_a_debug_container_may_not_select_devices_by_a_mount_or_variable() -> None:
    mount = {"name": "null", "mountPath": "/var/run/nvidia-container-devices/all"}
    mounting = _debugged(PLAIN, container("dbg", env=[IMAGE], volumeMounts=[mount]))
    variable = {"name": "NVIDIA_MIG_CONFIG_DEVICES", "value": "all"}
    opening = _debugged(PLAIN, container("dbg", env=[IMAGE, variable]))

    assert _debug(mounting, PLAIN).reasons == (Reason.HOST_ACCESS,)
    assert _debug(opening, PLAIN).reasons == (Reason.DEVICE_VARIABLE,)


def _resize(new: Json, old: Json = RUNNING) -> Decision:
    return mutate(
        new,
        phase=Phase.VALIDATE,
        operation=Operation.UPDATE,
        subresource="resize",
        old_object=old,
    )


def test_cpu_and_memory_may_be_resized() -> None:
    new = deepcopy(RUNNING)
    new["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "4"

    assert _resize(new).allowed


@pytest.mark.parametrize("amount", ["2", None])
def test_gpus_may_not_be_resized(amount: str | None) -> None:
    new = deepcopy(RUNNING)
    limits = new["spec"]["containers"][0]["resources"]["limits"]
    limits.pop(SHARED)
    if amount:
        limits[SHARED] = amount

    assert _resize(new).reasons == (Reason.OWNED_KEY,)


@pytest.mark.parametrize("subresource", ["binding", "eviction", "status", "log", "exec"])
@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE, Operation.CONNECT])
def test_other_subresources_are_none_of_sluices_business(
    subresource: str, operation: Operation
) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "llm"}}
    for phase in Phase:
        decision = mutate(eviction, phase=phase, operation=operation, subresource=subresource)
        assert decision.allowed
        assert not decision.touches_gpus
