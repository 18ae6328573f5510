# SPDX-License-Identifier: Apache-2.0
"""Ways around policy and requests that cannot be met: each is refused at kubectl, with a reason."""

from typing import Any

import pytest

from tests.integration.sluice.conftest import MakeTeam
from tests.integration.sluice.objects import GPU, SHARED, Json, container, plain_pod, pod
from tests.integration.sluice.team import Team

_PRIVILEGED: Json = {"securityContext": {"privileged": True}}


def _env(name: str, value: str = "all") -> Json:
    return {"env": [{"name": name, "value": value}]}


def _asks(gpus: object, resource: str = GPU) -> Json:
    return pod(container(gpus=gpus, resource=resource))


def _host_path(path: str, **parts: Any) -> Json:
    volume = {"name": "host", "hostPath": {"path": path}}
    return {"volumes": [volume], **parts}


def _adds(capability: str) -> Json:
    return {"securityContext": {"capabilities": {"add": [capability]}}}


_MOUNT = {"name": "pick", "mountPath": "/var/run/nvidia-container-devices/all"}
_PICK: Json = {"volumes": [{"name": "pick", "emptyDir": {}}]}

_REFUSED: dict[str, tuple[str, Json, str]] = {
    "privileged": ("team-a", pod(container(gpus=1, **_PRIVILEGED)), "[HostAccess] container main"),
    "privileged-sidecar": (
        "team-a",
        pod(container(gpus=1), container("beside", **_PRIVILEGED)),
        "[HostAccess] container beside is privileged, so it sees every GPU of its node",
    ),
    "privileged-init": (
        "team-a",
        pod(container(gpus=1), initContainers=[container("first", **_PRIVILEGED)]),
        "[HostAccess] container first is privileged",
    ),
    "capability": ("team-a", pod(container(gpus=1, **_adds("SYS_ADMIN"))), "capability SYS_ADMIN"),
    "host-pid": ("team-a", pod(hostPID=True), "[HostAccess] hostPID"),
    "host-ipc": ("team-a", pod(hostIPC=True), "[HostAccess] hostIPC"),
    "host-path-of-a-device": ("team-a", pod(**_host_path("/dev/nvidia0")), "hostPath /dev/nvidia0"),
    "host-path-above-devices": ("team-a", pod(**_host_path("/dev")), "hostPath /dev "),
    "host-path-without-a-request": (
        "team-a",
        plain_pod(**_host_path("//dev/./nvidiactl")),
        "hostPath /dev/nvidiactl reaches devices",
    ),
    "mount-that-picks-devices": (
        "team-a",
        pod(container(volumeMounts=[_MOUNT]), **_PICK),
        "[HostAccess] container main: a volume at /var/run/nvidia-container-devices/all",
    ),
    "visible-devices": (
        "team-a",
        pod(container(gpus=1, **_env("NVIDIA_VISIBLE_DEVICES"))),
        "[DeviceVariable] container main: the variable NVIDIA_VISIBLE_DEVICES",
    ),
    "mps-pipe": (
        "team-a",
        pod(container(gpus=1, **_env("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps"))),  # noqa: S108 - refused
        "[DeviceVariable]",
    ),
    "mig-config-devices": (
        "team-a",
        plain_pod(initContainers=[container("cut", **_env("NVIDIA_MIG_CONFIG_DEVICES"))]),
        "[DeviceVariable] container cut: the variable NVIDIA_MIG_CONFIG_DEVICES",
    ),
    "cdi-annotation": (
        "team-a",
        pod(annotations={"cdi.k8s.io/gpus": "nvidia.com/gpu=0"}),
        "[DeviceAnnotation] annotation cdi.k8s.io/gpus",
    ),
    "cdi-annotation-without-a-request": (
        "team-a",
        plain_pod(annotations={"nvidia.cdi.k8s.io/pod": "nvidia.com/gpu=0"}),
        "[DeviceAnnotation]",
    ),
    "node-name": ("team-a", pod(nodeName="h100-whole"), "[NodeName] spec.nodeName h100-whole"),
    "resource-claim": (
        "team-a",
        plain_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}]),
        "[ClaimsUnsupported]",
    ),
    "two-slices": ("team-a", _asks(2), "[MultipleShares] container main: asks for 2 of slice-4"),
    "eight-shares": ("team-a", _asks(8, SHARED), "[MultipleShares]"),
    "instance-of-others": (
        "team-a",
        _asks(1, "nvidia.com/mig-7g.80gb"),
        "tenant team-a may not use nvidia.com/mig-7g.80gb: it may use slice-4",
    ),
    "slice-of-others": ("team-m", _asks(1, SHARED), "[ProfileNotAllowed]"),
    "impossible-instance": (
        "team-m",
        _asks(1, "nvidia.com/mig-5g.99gb"),
        "main: nvidia.com/mig-5g.99gb is given by no profile: did you mean nvidia.com/mig-",
    ),
    "name-of-another-project": ("team-t", _asks(1, "nvidia.com/gpumem"), "[UnknownGPUResource]"),
    "misspelt-name": ("team-t", _asks(1, "nvidia.com/GPU"), "did you mean nvidia.com/gpu?"),
    "vendor-of-no-policy": ("team-t", _asks(1, "amd.com/gpu"), "[NoPolicy]"),
    "over-the-ceiling": (
        "team-t",
        pod(container(gpus=9), labels={"workload": "training"}),
        "exceeded quota: tenant team-t has a ceiling of 8 GPUs, this pod asks 9: ask for at most 8",
    ),
    "fraction": (
        "team-a",
        _asks("500m"),
        "[InvalidQuantity] container main: nvidia.com/gpu '500m'",
    ),
    "more-than-there-are": ("team-t", _asks(2**63 - 1), "[InvalidQuantity]"),
    "negative": ("team-a", _asks("-3"), "must not be negative"),
    "request-without-limit": (
        "team-a",
        pod(container(resources={"requests": {GPU: 1}})),
        "[RequestWithoutLimit] container main: nvidia.com/gpu is in requests but not in limits",
    ),
    "too-many-containers": (
        "team-a",
        pod(*(container(f"c{number}", gpus=1) for number in range(501))),
        "[TooManyContainers] 501 containers; at most 500 are decided on",
    ),
    "no-tenant": (
        "none",
        pod(),
        "belongs to no tenant, so it has no GPUs: ask the platform team for a tenant",
    ),
}


@pytest.mark.parametrize(("tenant", "asked", "message"), _REFUSED.values(), ids=_REFUSED)
def test_it_is_refused_and_the_message_says_why(
    make_team: MakeTeam, tenant: str, asked: Json, message: str
) -> None:
    team = make_team(tenant)

    answer = team.apply(asked)

    assert not answer.ok
    assert answer.error.startswith("Error from server (Forbidden): ")
    assert "denied the request: sluice: [" in answer.error
    assert message in answer.error
    assert len(answer.error.splitlines()) == 1
    assert team.pods() == []


def test_every_violation_is_told_at_once(team_a: Team) -> None:
    bad = container(gpus=2, **_PRIVILEGED, **_env("LD_PRELOAD"))

    answer = team_a.apply(pod(bad, hostPID=True))

    for reason in ("[DeviceVariable]", "[HostAccess] hostPID", "is privileged", "[MultipleShares]"):
        assert reason in answer.error


def test_what_is_refused_is_refused_in_a_dry_run_too(team_a: Team) -> None:
    dry, real = team_a.apply(_asks(8, SHARED), dry_run=True), team_a.apply(_asks(8, SHARED))

    assert not dry.ok
    assert dry.error == real.error
