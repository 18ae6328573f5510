# SPDX-License-Identifier: Apache-2.0
"""Which new pods the API server sends to which webhook entry, and which it does not."""

from collections.abc import Mapping
from typing import Any

import pytest

from certs.files import CertificateFiles
from reconciler.manifests.render import render_groups
from tests.integration.manifests.calls import GATE, GPU, MUTATE, OTHER, PLAIN, sent
from tests.integration.manifests.installation import (
    Installation,
    Object,
    container,
    entry_paths,
    gpu_container,
    pod,
    until,
)
from tests.support.webhook_recorder import WebhookRecorder


@pytest.fixture
def runtime_class(installation: Installation) -> str:
    """The runtime class of NVIDIA's operator; pods that name a missing one are refused early."""
    name = "nvidia-cdi"
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": name,
    }
    installation.apply([runtime])
    return name


def env(name: str, **source: object) -> Object:
    return container(env=[{"name": name, **source}])


def host_path(path: str) -> dict[str, Any]:
    return {"volumes": [{"name": "host", "hostPath": {"path": path}}]}


def mounted_at(path: str) -> Object:
    return container(volumeMounts=[{"name": "v", "mountPath": path}])


def asking(**resources: object) -> Object:
    return container(resources=resources)


EMPTY_DIR = {"volumes": [{"name": "v", "emptyDir": {}}]}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}

GPU_PODS: Mapping[str, Object] = {
    "whole": pod("", gpu_container()),
    "shared": pod("", gpu_container(resource="nvidia.com/gpu.shared")),
    "mig": pod("", gpu_container(resource="nvidia.com/mig-1g.10gb.me")),
    "upper-case": pod("", gpu_container(resource="nvidia.com/GPU")),
    "amd": pod("", gpu_container(resource="amd.com/gpu")),
    "intel-monitoring": pod("", gpu_container(resource="gpu.intel.com/i915_monitoring")),
    "volcano": pod("", gpu_container(resource="volcano.sh/vgpu-number")),
    "ascend": pod("", gpu_container(resource="huawei.com/Ascend910B")),
    "class": pod("", gpu_container(resource="deviceclass.resource.kubernetes.io/gpu.nvidia.com")),
    "zero": pod("", asking(limits={"nvidia.com/gpu": "0"})),
    "second": pod("", container(), gpu_container("gpu")),
    "init": pod("", container(), initContainers=[gpu_container("gpu")]),
    "sidecar": pod("", container(), initContainers=[gpu_container("gpu", restartPolicy="Always")]),
    "claim": pod("", resourceClaims=[{"name": "c", "resourceClaimName": "c"}]),
    "nvidia-env": pod("", env("NVIDIA_DRIVER_CAPABILITIES", value="all")),
    "visible-all": pod("", env("NVIDIA_VISIBLE_DEVICES", value="all")),
    "visible-empty": pod("", env("NVIDIA_VISIBLE_DEVICES", value="")),
    "visible-field": pod("", env("NVIDIA_VISIBLE_DEVICES", valueFrom=FIELD)),
    "cuda-env": pod("", env("CUDA_MPS_PIPE_DIRECTORY", value="/mps")),
    "init-env": pod(
        "",
        container(),
        initContainers=[container("i", env=[{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}])],
    ),
    "runtime-class": pod("", runtimeClassName="nvidia-cdi"),
    "device": pod("", **host_path("/dev/nvidia0")),
    "device-spelled": pod("", **host_path("//dev/./nvidia-caps")),
    "dri": pod("", **host_path("/dev/dri/renderD128")),
    "kfd": pod("", **host_path("/dev/kfd")),
    "run-nvidia": pod("", **host_path("/run/nvidia/mps")),
    "cdi": pod("", **host_path("/etc/cdi")),
    "mount-selects": pod("", mounted_at("/var/run/nvidia-container-devices/all"), **EMPTY_DIR),
    "cdi-annotation": pod("", annotations={"nvidia.cdi.k8s.io/container.main": "nvidia.com/gpu=0"}),
    "hami-annotation": pod("", annotations={"hami.io/vgpu-devices-allocated": "x"}),
    "fraction": pod("", annotations={"gpu-fraction": "0.5"}),
    "state-annotation": pod("", annotations={"state.sluice.dev/decision": "{}"}),
    "state-label": pod("", labels={"state.sluice.dev/tenant": "x"}),
    "gate": pod("", schedulingGates=GATE),
    "opted-out": pod("", gpu_container(), labels={"hami.io/webhook": "ignore"}),
    "other-scheduler": pod("", gpu_container(), schedulerName="other"),
    "node-name": pod("", gpu_container(), nodeName="somewhere"),
}

PLAIN_PODS: Mapping[str, Object] = {
    "cpu": pod("", asking(limits={"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"})),
    "nic": pod("", asking(limits={"rdma/hca": "1", "intel.com/sriov": "1"})),
    "huge-pages": pod("", asking(limits={"memory": "1Gi", "hugepages-2Mi": "4Mi"})),
    "nvidia-like": pod("", asking(limits={"example.com/nvidia": "1"})),
    "void": pod("", env("NVIDIA_VISIBLE_DEVICES", value="void")),
    "other-env": pod("", env("MY_NVIDIA_VISIBLE_DEVICES", value="all")),
    "gpu-annotation": pod("", annotations={"example.com/gpu-fraction": "1"}),
    "user-key": pod("", annotations={"sluice.dev/gpu-memory": "8Gi"}),
    "other-gate": pod("", schedulingGates=[{"name": "example.com/quota"}]),
    "storage-driver": pod("", **host_path("/var/lib/kubelet/plugins/csi.example.com")),
    "log-agent": pod("", **host_path("/var/log")),
    "device-directory": pod("", **host_path("/dev")),
    "other-device": pod("", **host_path("/dev/fuse")),
}


def named(pods: Mapping[str, Object]) -> list[Object]:
    return [{**item, "metadata": {**item["metadata"], "name": name}} for name, item in pods.items()]


def test_gpu_pods_go_to_their_entry_and_all_others_to_theirs(
    registered: Installation, recorder: WebhookRecorder, runtime_class: str
) -> None:
    until(
        lambda: registered.create(pod("r", runtimeClassName=runtime_class), dry_run=True)[0] != [],
        "the runtime class is known",
    )
    recorder.take()
    pods = named({**GPU_PODS, **PLAIN_PODS})
    created, complaint = registered.create(*pods, dry_run=True)
    assert (len(created), complaint) == (len(pods), "")
    expected = {**dict.fromkeys(GPU_PODS, GPU), **dict.fromkeys(PLAIN_PODS, PLAIN)}
    assert sent(recorder) == expected


def test_a_pod_that_only_requests_is_seen_before_the_api_server_refuses_it(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    asks = pod("requests-only", asking(requests={"nvidia.com/gpu": "1"}))
    empty = {**pod("empty"), "spec": {"containers": []}}
    created, complaint = registered.create(asks, empty, dry_run=True)
    assert created == []
    assert "Limit must be set for non overcommitable resources" in complaint
    assert "spec.containers: Required value" in complaint
    assert sent(recorder) == {"requests-only": {MUTATE}, "empty": {OTHER}}


def test_with_admission_policies_other_pods_are_sent_nowhere(
    installation: Installation, recorder: WebhookRecorder, certificates: CertificateFiles
) -> None:
    options = installation.recorded_options(recorder, certificates)
    groups = render_groups(options)
    installation.apply([*groups["admission-policies"], *entry_paths(groups["webhooks"])])
    installation.wait_for_void()
    installation.wait_for_calls(recorder, GPU)
    # The policy has made void of `all` before any webhook is asked.
    plain = {**PLAIN_PODS, "was-all": GPU_PODS["visible-all"]}
    created, complaint = installation.create(*named(plain), dry_run=True)
    assert (len(created), complaint) == (len(plain), "")
    assert sent(recorder) == {}


def test_guarded_namespaces_are_chosen_by_name(
    installation: Installation,
    recorder: WebhookRecorder,
    certificates: CertificateFiles,
    make_namespace: Any,
) -> None:
    excluded = make_namespace({"kubernetes.io/team": "a"})
    options = installation.recorded_options(
        recorder,
        certificates,
        only_namespaces=(installation.namespace, excluded, "kube-system"),
        exclude_namespaces=(excluded,),
    )
    installation.apply(entry_paths(render_groups(options)["webhooks"]))
    installation.wait_for_calls(recorder, GPU)
    for namespace in (excluded, "kube-system"):
        installation.control_plane.kubectl(
            *("create", "-n", namespace, "--dry-run=server", "--filename=-"),
            stdin=pod("elsewhere", gpu_container()),
        )
    assert sent(recorder) == {}


def test_the_largest_pod_that_is_decided_on_can_be_told_apart(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    entries = [{"name": f"SOME_VARIABLE_{number}", "value": "x"} for number in range(20)]
    resources = {"limits": {"cpu": "1m", "memory": "1Mi", "rdma/hca": "1"}}
    containers = [
        container(f"c{number}", env=entries, resources=resources) for number in range(500)
    ]
    _, complaint = registered.create(pod("large", *containers), dry_run=True)
    assert complaint == ""
    assert sent(recorder) == {"large": {OTHER}}
