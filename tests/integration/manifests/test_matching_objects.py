# SPDX-License-Identifier: Apache-2.0
"""Which workloads and resource claims the API server sends to which webhook entry."""

from collections.abc import Mapping
from typing import Any

from tests.integration.manifests.calls import CLAIMS, WORKLOADS, sent
from tests.integration.manifests.installation import (
    Installation,
    Object,
    container,
    gpu_container,
    until,
)
from tests.support.webhook_recorder import WebhookRecorder


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
