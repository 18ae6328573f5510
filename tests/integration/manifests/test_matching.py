# SPDX-License-Identifier: Apache-2.0
"""Which objects the API server sends to which webhook entry, and which it does not."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from certs.files import CertificateFiles
from reconciler.manifests.render import render_groups
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

MUTATE, VALIDATE, OTHER = "/mutate", "/validate", "/other-pods.mutate"
WORKLOADS, CLAIMS = "/workloads.validate", "/claims.validate"
GPU, PLAIN = {MUTATE, VALIDATE}, {OTHER}
GATE = [{"name": "sluice.dev/quota"}]


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


@pytest.fixture
def registered(
    installation: Installation, recorder: WebhookRecorder, certificates: CertificateFiles
) -> Installation:
    """All webhooks, those for clusters without MutatingAdmissionPolicy too."""
    options = installation.recorded_options(
        recorder, certificates, has_mutating_admission_policy=False
    )
    installation.apply(entry_paths(render_groups(options)["webhooks"]))
    installation.wait_for_calls(recorder, GPU | PLAIN)
    return installation


def sent(recorder: WebhookRecorder) -> dict[str, set[str]]:
    """Return the entries that each object was sent to, by its name."""
    found: dict[str, set[str]] = {}
    for recorded in recorder.take():
        found.setdefault(recorded.object_name, set()).add(recorded.path)
    return found


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


UPDATES: tuple[tuple[str, Mapping[str, Any], set[str]], ...] = (
    ("label", {"metadata": {"labels": {"example.com/a": "1"}}}, set()),
    ("annotation", {"metadata": {"annotations": {"example.com/a": "1"}}}, set()),
    ("finalizer", {"metadata": {"finalizers": ["example.com/f"]}}, set()),
    ("no finalizer", {"metadata": {"finalizers": []}}, set()),
    ("user key", {"metadata": {"annotations": {"sluice.dev/gpu-memory": "8Gi"}}}, {VALIDATE}),
    ("same key", {"metadata": {"annotations": {"sluice.dev/gpu-memory": "8Gi"}}}, set()),
    ("no user key", {"metadata": {"annotations": {"sluice.dev/gpu-memory": None}}}, {VALIDATE}),
    ("state", {"metadata": {"annotations": {"state.sluice.dev/x": ""}}}, {VALIDATE}),
    ("state label", {"metadata": {"labels": {"state.sluice.dev/x": "1"}}}, {VALIDATE}),
    ("device", {"metadata": {"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=0"}}}, {VALIDATE}),
    (
        "toleration",
        {"spec": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}},
        {VALIDATE},
    ),
    ("selector", {"spec": {"nodeSelector": {"example.com/pool": "a"}}}, {VALIDATE}),
    ("image", {"spec": {"containers": [container(image="registry.test/other")]}}, {VALIDATE}),
    (
        "gate",
        {"spec": {"schedulingGates": [{"name": "sluice.dev/quota", "$patch": "delete"}]}},
        {VALIDATE},
    ),
)


def patch(installation: Installation, name: str, change: Mapping[str, Any], *flags: str) -> None:
    installation.control_plane.kubectl(
        *("patch", "pod", name, "-n", installation.namespace, "--type=strategic"),
        *("--patch", json.dumps(change), *flags),
    )


def test_updates_of_a_gpu_pod_are_sent_only_if_they_change_what_is_owned(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    registered.create(pod("gpu", gpu_container(), schedulingGates=GATE))
    recorder.take()
    found = {}
    for what, change, _ in UPDATES:
        patch(registered, "gpu", change)
        found[what] = sent(recorder).get("gpu", set())
    assert found == {what: expected for what, _, expected in UPDATES}


def test_updates_of_a_plain_pod_are_not_sent_unless_they_touch_gpus(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    registered.create(pod("plain", schedulingGates=[{"name": "example.com/other"}]))
    recorder.take()
    for change in (
        {"spec": {"nodeSelector": {"example.com/pool": "a"}}},
        {"spec": {"schedulingGates": [{"name": "example.com/other", "$patch": "delete"}]}},
        {"spec": {"containers": [container(image="registry.test/other")]}},
        {"metadata": {"annotations": {"sluice.dev/gpu-memory": "8Gi"}}},
    ):
        patch(registered, "plain", change)
    assert sent(recorder) == {}
    patch(registered, "plain", {"metadata": {"annotations": {"hami.io/vgpu-node": "x"}}})
    assert sent(recorder) == {"plain": {VALIDATE}}


def test_debugging_and_resizing_a_gpu_pod_is_validated(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    cpu = {"requests": {"cpu": "1m"}}
    both = {**cpu, "limits": {"nvidia.com/gpu": "1"}}
    # Gated, since simulated nodes do not say that they can resize.
    other = [{"name": "example.com/other"}]
    registered.create(
        pod("gpu", container(resources=both), schedulingGates=GATE),
        pod("plain", container(resources=cpu), schedulingGates=other),
    )
    recorder.take()
    resize = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2m"}}}]}}
    for name in ("gpu", "plain"):
        registered.control_plane.kubectl(
            *("debug", name, "-n", registered.namespace, "--image=registry.test/shell"),
            "--container=shell",
        )
    assert sent(recorder) == {"gpu": {VALIDATE, OTHER}, "plain": {OTHER}}
    for name in ("gpu", "plain"):
        patch(registered, name, resize, "--subresource=resize")
    assert sent(recorder) == {"gpu": {VALIDATE}}


def test_status_binding_eviction_and_deletion_are_never_sent(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    registered.create(pod("gpu", gpu_container(), schedulingGates=GATE))
    patch(
        registered,
        "gpu",
        {"spec": {"schedulingGates": [{"name": GATE[0]["name"], "$patch": "delete"}]}},
    )
    recorder.take()
    patch(registered, "gpu", {"metadata": {"annotations": {"a": "b"}}}, "--subresource=status")
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "gpu", "namespace": registered.namespace},
    }
    path = f"/api/v1/namespaces/{registered.namespace}/pods/gpu/eviction"
    registered.control_plane.kubectl("create", f"--raw={path}", "--filename=-", stdin=eviction)
    registered.control_plane.kubectl(
        *("delete", "pod", "gpu", "-n", registered.namespace, "--ignore-not-found", "--now")
    )
    assert sent(recorder) == {}


def workload(kind: str, name: str, template: Mapping[str, Any]) -> dict[str, Any]:
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    spec: dict[str, Any] = {"template": template}
    if kind in ("Job", "CronJob"):
        spec["template"] = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    else:
        spec["selector"] = {"matchLabels": {"app": "a"}}
    if kind == "StatefulSet":
        spec["serviceName"] = "a"
    if kind == "CronJob":
        spec = {"schedule": "0 0 31 2 *", "jobTemplate": {"spec": spec}}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def template(*containers: Object, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "a"}, **metadata},
        "spec": {"containers": list(containers)},
    }


KINDS = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "CronJob")


def test_workloads_are_sent_if_their_templates_touch_gpus(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    objects = []
    for kind in KINDS:
        objects += [
            workload(kind, f"{kind.lower()}-gpu", template(gpu_container())),
            workload(
                kind,
                f"{kind.lower()}-claims",
                template(container(), annotations={"state.sluice.dev/decision": "{}"}),
            ),
            workload(kind, f"{kind.lower()}-plain", template(container())),
        ]
    operated = workload("StatefulSet", "operated", template(gpu_container()))
    owner = {"apiVersion": "example.com/v1", "kind": "Model", "name": "m", "uid": "1"}
    operated["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    objects.append(operated)
    created, complaint = registered.create(*objects, dry_run=True)
    assert (len(created), complaint) == (len(objects), "")
    expected = {
        f"{kind.lower()}-{what}": {WORKLOADS} for kind in KINDS for what in ("gpu", "claims")
    }
    assert sent(recorder) == {**expected, "operated": {WORKLOADS}}


def test_only_changes_of_a_workloads_spec_are_sent_and_no_parts_of_another(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    kubectl = registered.control_plane.kubectl
    namespace = ("-n", registered.namespace)
    deployment = workload("Deployment", "web", template(gpu_container()))
    deployment["spec"]["paused"] = True
    deployment["spec"]["replicas"] = 0
    registered.create(deployment)
    assert sent(recorder) == {"web": {WORKLOADS}}
    kubectl("label", "deployment", "web", *namespace, "a=b")
    kubectl("annotate", "deployment", "web", *namespace, "a=b")
    assert sent(recorder) == {}
    # Unpausing changes the spec; the ReplicaSet that the controller makes of it is not sent.
    kubectl("rollout", "resume", "deployment", "web", *namespace)
    until(
        lambda: len(registered.control_plane.get("replicasets", *namespace)["items"]) == 1,
        "the controller has made its ReplicaSet",
    )
    assert sent(recorder) == {"web": {WORKLOADS}}


def claim(kind: str, name: str, *requests: Object) -> dict[str, Any]:
    spec: dict[str, Any] = {"devices": {"requests": list(requests)}}
    if kind == "ResourceClaimTemplate":
        spec = {"spec": spec}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def exactly(device_class: str) -> Object:
    return {"name": "r", "exactly": {"deviceClassName": device_class}}


def test_claims_are_sent_if_they_are_for_gpus(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    either = {
        "name": "r",
        "firstAvailable": [
            {"name": "a", "deviceClassName": "nic.example.com"},
            {"name": "b", "deviceClassName": "mig.nvidia.com"},
        ],
    }
    objects = [
        item
        for kind in ("ResourceClaim", "ResourceClaimTemplate")
        for item in (
            claim(kind, f"{kind.lower()}-gpu", exactly("gpu.nvidia.com")),
            claim(kind, f"{kind.lower()}-either", either),
            claim(kind, f"{kind.lower()}-nic", exactly("nic.example.com")),
        )
    ]
    created, complaint = registered.create(*objects)
    assert (len(created), complaint) == (len(objects), "")
    expected = {
        f"{kind}-{what}": {CLAIMS}
        for kind in ("resourceclaim", "resourceclaimtemplate")
        for what in ("gpu", "either")
    }
    assert sent(recorder) == expected
    registered.control_plane.kubectl(
        "label", "resourceclaim/resourceclaim-gpu", "-n", registered.namespace, "a=b"
    )
    assert sent(recorder) == {}


def test_claims_in_an_older_version_are_sent_too(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    older = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "older"},
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu.nvidia.com"}]}},
    }
    served = registered.control_plane.kubectl("api-versions").stdout.split()
    if "resource.k8s.io/v1beta1" not in served:
        assert "resource.k8s.io/v1" in served
        return
    registered.create(older)
    assert sent(recorder) == {"older": {CLAIMS}}


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
