# SPDX-License-Identifier: Apache-2.0
"""Ways around GPU requests, each refused or cured; and what looks like one but is not."""

from typing import Any

import pytest

from policies.checks import host_access
from policies.model.keys import VISIBLE_DEVICES, VOID
from policies.model.reasons import Reason
from tests.support.builders import GPU, Json, container, mutate, patched, pod

IMAGE = {"name": VISIBLE_DEVICES, "value": VOID}


def _env(name: str, value: str = "x") -> list[Json]:
    return [{"name": name, "value": value}]


def _reasons(found: Json, **changes: Any) -> tuple[Reason, ...]:
    return mutate(found, **changes).reasons


@pytest.mark.parametrize(
    "name",
    [
        VISIBLE_DEVICES,
        "CUDA_DEVICE_MEMORY_LIMIT",
        "CUDA_DEVICE_MEMORY_LIMIT_0",
        "CUDA_DISABLE_CONTROL",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
        "CUDA_MPS_PIPE_DIRECTORY",
        "GPU_CORE_UTILIZATION_POLICY",
        "LD_PRELOAD",
        "NVIDIA_IMEX_CHANNELS",
    ],
)
@pytest.mark.parametrize("section", ["containers", "initContainers"])
def test_a_gpu_container_may_not_choose_devices_or_undo_limits(name: str, section: str) -> None:
    asking = container("asking", "1", env=_env(name))
    found = pod(asking) if section == "containers" else pod(container(), initContainers=[asking])
    decision = mutate(found)

    assert decision.reasons == (Reason.DEVICE_VARIABLE,)
    assert f"container asking: the variable {name}" in decision.message


def test_a_variable_from_elsewhere_counts_as_much_as_one_with_a_value() -> None:
    entry = {"name": VISIBLE_DEVICES, "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}

    assert _reasons(pod(container(gpus="1", env=[entry]))) == (Reason.DEVICE_VARIABLE,)


@pytest.mark.parametrize(
    "env",
    [
        [],
        _env(VISIBLE_DEVICES, "all"),
        [{"name": VISIBLE_DEVICES, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        [*_env(VISIBLE_DEVICES, "void"), *_env(VISIBLE_DEVICES, "all")],
    ],
    ids=["absent", "all", "from elsewhere", "twice"],
)
@pytest.mark.parametrize("gpus", [None, "0", 0])
def test_a_container_without_a_gpu_is_made_to_see_none(env: list[Json], gpus: object) -> None:
    found = pod(container("plain", gpus, env=[*_env("A"), *env]))
    decision = mutate(found)

    assert decision.allowed
    assert patched(found, decision)["spec"]["containers"][0]["env"] == [*_env("A"), IMAGE]


def test_void_is_taken_out_of_a_container_that_gets_a_gpu() -> None:
    found = pod(container(gpus="1", env=[*_env("A"), IMAGE]))

    assert patched(found, mutate(found))["spec"]["containers"][0]["env"] == _env("A")


def test_a_container_of_another_vendors_gpu_sees_no_nvidia_device() -> None:
    found = pod(container(gpus="0", resource="amd.com/gpu"), container("b"))

    assert all(c["env"] == [IMAGE] for c in patched(found, mutate(found))["spec"]["containers"])


@pytest.mark.parametrize("name", ["NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_IMEX_CHANNELS"])
def test_what_opens_devices_without_a_request_is_refused_in_any_container(name: str) -> None:
    assert _reasons(pod(container(env=_env(name)))) == (Reason.DEVICE_VARIABLE,)
    assert _reasons(pod(container(env=_env(name)), namespace="other")) == (Reason.DEVICE_VARIABLE,)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "CUDA_DISABLE_CONTROL", "CUDA_VISIBLE_DEVICES"])
def test_a_container_without_a_gpu_may_have_what_only_matters_with_one(name: str) -> None:
    assert _reasons(pod(container(env=_env(name)))) == ()


def test_a_gpu_container_may_narrow_what_it_sees() -> None:
    assert _reasons(pod(container(gpus="1", env=_env("CUDA_VISIBLE_DEVICES", "0")))) == ()


@pytest.mark.parametrize(
    "key",
    [
        "cdi.k8s.io/gpu",
        "nvidia.cdi.k8s.io/container.main",
        "nvidia.cdi.k8s.io/pod",
        "hami.io/vgpu-devices-allocated",
        "run.ai/x",
        "scheduling.koordinator.sh/device-allocated",
        "volcano.sh/vgpu-ids-new",
        "gpu-fraction",
        "gpu-memory",
        "nvidia.com/use-gpuuuid",
    ],
)
def test_an_annotation_that_allocates_devices_is_refused_with_or_without_a_request(
    key: str,
) -> None:
    for gpus in ("1", None):
        found = pod(container(gpus=gpus), annotations={key: "0"})
        assert _reasons(found) == (Reason.DEVICE_ANNOTATION,)


def test_annotations_that_only_look_alike_pass() -> None:
    keys = {"example.com/cdi.k8s.io": "1", "hami.io/note": "1", "sluice.dev/gpu-memory": "8Gi"}

    assert _reasons(pod(annotations=keys)) == ()


@pytest.mark.parametrize("field", ["hostPID", "hostIPC"])
def test_a_gpu_pod_may_not_share_its_nodes_namespaces(field: str) -> None:
    shared: Json = {field: True}

    assert _reasons(pod(**shared)) == (Reason.HOST_ACCESS,)
    assert _reasons(pod(container(), **shared)) == ()
    shared[field] = False
    assert _reasons(pod(**shared)) == ()


@pytest.mark.parametrize(
    "security",
    [
        {"privileged": True},
        {"capabilities": {"add": ["SYS_ADMIN"]}},
        {"capabilities": {"add": ["NET_ADMIN", "CAP_MKNOD"]}},
        {"capabilities": {"add": ["all"]}},
        {"capabilities": {"add": ["sys_rawio"]}},
    ],
)
@pytest.mark.parametrize("place", ["itself", "before", "after", "init", "sidecar"])
def test_no_container_beside_a_gpu_may_reach_its_device(security: Json, place: str) -> None:
    helper = container("helper", securityContext=security)
    asking = container("asking", "1")
    found = {
        "itself": pod({**asking, "securityContext": security}),
        "before": pod(helper, asking),
        "after": pod(asking, helper),
        "init": pod(asking, initContainers=[helper]),
        "sidecar": pod(asking, initContainers=[{**helper, "restartPolicy": "Always"}]),
    }[place]

    assert _reasons(found) == (Reason.HOST_ACCESS,)


def test_a_pod_without_gpus_may_be_privileged() -> None:
    assert _reasons(pod(container(gpus="0", securityContext={"privileged": True}))) == ()


def test_harmless_capabilities_pass() -> None:
    security = {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, "privileged": False}

    assert _reasons(pod(container(gpus="1", securityContext=security))) == ()


def _host_path(path: str) -> Json:
    return {"volumes": [{"name": "v", "hostPath": {"path": path}}]}


@pytest.mark.parametrize(
    "path",
    [
        *host_access.DEVICE_PATHS,
        "/dev/nvidia0",
        "/dev/nvidia-caps/nvidia-cap1",
        "//dev///nvidia0",
        "/./dev/./nvidiactl",
        "/dev/nvidia0/",
        "/run/nvidia/mps",
    ],
)
def test_a_host_path_to_devices_is_refused_in_any_pod(path: str) -> None:
    assert _reasons(pod(container(gpus="1"), **_host_path(path))) == (Reason.HOST_ACCESS,)
    assert _reasons(pod(container(), **_host_path(path))) == (Reason.HOST_ACCESS,)


@pytest.mark.parametrize("path", ["/", "/dev", "/dev/", "/var", "/run", *host_access.DAEMON_PATHS])
def test_a_host_path_above_devices_or_to_a_daemon_is_refused_beside_a_gpu(path: str) -> None:
    assert _reasons(pod(container(gpus="1"), **_host_path(path))) == (Reason.HOST_ACCESS,)
    assert _reasons(pod(container(), **_host_path(path))) == ()


@pytest.mark.parametrize(
    "path", ["/dev/hugepages", "/data", "/devices", "/var/log", "/dev/nvme0n1"]
)
def test_other_host_paths_pass(path: str) -> None:
    assert _reasons(pod(container(gpus="1"), **_host_path(path))) == ()


@pytest.mark.parametrize(
    "path",
    [
        "/var/run/nvidia-container-devices",
        "/var/run/nvidia-container-devices/all",
        "/run/nvidia-container-devices/GPU-0",
        "//var//run/nvidia-container-devices/all",
        "var/run/nvidia-container-devices/all",
        "/srv/../var/run/nvidia-container-devices/all",
    ],
)
@pytest.mark.parametrize("gpus", ["1", None])
def test_a_mount_by_which_the_runtime_selects_devices_is_refused(path: str, gpus: object) -> None:
    found = pod(container(gpus=gpus, volumeMounts=[{"name": "v", "mountPath": path}]))

    assert _reasons(found) == (Reason.HOST_ACCESS,)


def test_other_mounts_pass() -> None:
    mounts = [{"name": "v", "mountPath": "/var/run/nvidia-container-devices-of-mine"}]

    assert _reasons(pod(container(gpus="1", volumeMounts=mounts))) == ()


def test_a_gpu_pod_may_not_name_its_node() -> None:
    decision = mutate(pod(nodeName="n1"))

    assert decision.reasons == (Reason.NODE_NAME,)
    assert "kubernetes.io/hostname" in decision.message
    assert _reasons(pod(container(gpus="0"), nodeName="n1")) == ()
    assert _reasons(pod(nodeName="")) == ()


def test_claims_are_refused_since_a_pod_does_not_say_what_they_give() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}]

    assert _reasons(pod(container(), resourceClaims=claims)) == (Reason.CLAIMS_UNSUPPORTED,)
    assert _reasons(pod(container(), resourceClaims=[])) == ()


def test_another_scheduler_or_a_label_spares_no_check() -> None:
    found = pod(
        container(gpus="1", env=_env(VISIBLE_DEVICES, "all")),
        schedulerName="mine",
        labels={"hami.io/webhook": "ignore", "sluice.dev/skip": "true"},
    )

    assert _reasons(found) == (Reason.DEVICE_VARIABLE,)


def test_a_variable_source_that_nobody_can_look_into_is_warned_of() -> None:
    source = [{"configMapRef": {"name": "settings"}}]
    warned = mutate(pod(container(gpus="1", envFrom=source)))

    assert warned.allowed
    assert any("envFrom must not hold NVIDIA_VISIBLE_DEVICES" in w for w in warned.warnings)
    prefixed = [{"prefix": "APP_", "configMapRef": {"name": "settings"}}]
    assert len(mutate(pod(container(gpus="1", envFrom=prefixed))).warnings) == 1


def test_every_fault_of_a_pod_is_told_at_once() -> None:
    found = pod(
        container("a", "500m"),
        container("b", "1", env=_env(VISIBLE_DEVICES, "all")),
        container("c", "1", resource="nvidia.com/GPU"),
        hostPID=True,
    )

    assert set(_reasons(found)) == {
        Reason.INVALID_QUANTITY,
        Reason.DEVICE_VARIABLE,
        Reason.HOST_ACCESS,
        Reason.UNKNOWN_GPU_RESOURCE,
    }
    assert GPU in mutate(found).message
