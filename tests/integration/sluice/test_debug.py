# SPDX-License-Identifier: Apache-2.0
"""`kubectl debug`: a debug container gets no devices, in any pod and whatever it asks for."""

import pytest

from tests.integration.sluice.objects import (
    IMAGE,
    SHARED,
    Json,
    gpus,
    plain_pod,
    pod,
    void_containers,
)
from tests.integration.sluice.team import Answer, Team


def _debug(team: Team, name: str, *options: str) -> Answer:
    debug = ("debug", name, f"--image={IMAGE}", "--container=debugger", "--attach=false")
    return team.kubectl(*debug, "--quiet", *options)


@pytest.mark.parametrize("made", [pod(name="it"), plain_pod("it")], ids=["gpu", "plain"])
@pytest.mark.parametrize(
    "options",
    [(), ("--target=main",), ("--env=NVIDIA_VISIBLE_DEVICES=all",), ("--env=A=b",)],
    ids=["plainly", "targeted", "asking-for-all", "with-a-variable"],
)
def test_a_debug_container_gets_void(team_a: Team, made: Json, options: tuple[str, ...]) -> None:
    team_a.create(made)
    team_a.running("it")

    answer = _debug(team_a, "it", *options)

    assert answer.ok, answer.error
    (debugger,) = team_a.pod("it")["spec"]["ephemeralContainers"]
    values = [e.get("value") for e in debugger["env"] if e["name"] == "NVIDIA_VISIBLE_DEVICES"]
    assert values == ["void"]


def test_a_second_debug_container_gets_void_too(team_a: Team) -> None:
    team_a.create(pod(name="it"))
    team_a.running("it")
    assert _debug(team_a, "it").ok

    second = team_a.kubectl(
        "debug", "it", f"--image={IMAGE}", "--container=second", "--attach=false", "--quiet"
    )

    assert second.ok, second.error
    assert void_containers(team_a.pod("it")) == {"debugger", "second"}


def test_a_privileged_debug_container_is_refused_beside_a_gpu(team_a: Team) -> None:
    team_a.create(pod(name="it"), plain_pod())
    team_a.running("it")

    refused = _debug(team_a, "it", "--profile=sysadmin")
    allowed = _debug(team_a, "plain", "--profile=sysadmin")

    assert not refused.ok
    assert "[HostAccess] container debugger is privileged" in refused.error
    assert allowed.ok, allowed.error


def test_a_variable_that_opens_devices_is_refused(team_a: Team) -> None:
    team_a.create(plain_pod("it"))

    answer = _debug(team_a, "it", "--env=NVIDIA_MIG_CONFIG_DEVICES=all")

    assert not answer.ok
    assert "[DeviceVariable] debug container debugger" in answer.error


def test_a_copy_of_a_gpu_pod_is_decided_on_like_any_pod(team_a: Team) -> None:
    team_a.create(pod(name="it"))
    team_a.running("it")

    answer = _debug(team_a, "it", "--copy-to=copied", "--env=NVIDIA_VISIBLE_DEVICES=all")

    assert answer.ok, answer.error
    copied = team_a.running("copied")
    assert gpus(copied) == {"main": {SHARED: "1"}}
    assert void_containers(copied) == {"debugger"}
    assert copied["spec"]["nodeName"] == "h100-shared"


def test_a_copy_on_the_same_node_would_pass_by_the_scheduler_and_is_refused(team_a: Team) -> None:
    team_a.create(pod(name="it"))
    team_a.running("it")

    answer = _debug(team_a, "it", "--copy-to=copied", "--same-node")

    assert not answer.ok
    assert "[NodeName]" in answer.error
