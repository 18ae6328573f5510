# SPDX-License-Identifier: Apache-2.0
"""The admission policies keep devices out of containers that ask for none, without any webhook."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

import pytest

from certs.files import CertificateFiles
from reconciler.manifests.render import render, render_groups
from tests.integration.manifests.installation import (
    DEADLINE_SECONDS,
    Installation,
    container,
    from_field,
    gpu_container,
    pod,
    until,
    variables,
)
from tests.support.webhook_recorder import WebhookRecorder

ALL = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}


@pytest.fixture
def policies(installation: Installation) -> Installation:
    """The admission policies alone: no webhook is installed and nothing of Sluice runs."""
    installation.apply(render_groups(installation.options())["admission-policies"])
    installation.wait_for_void()
    return installation


def test_every_container_without_a_gpu_gets_void(policies: Installation) -> None:
    mixed = pod(
        "mixed",
        container("plain"),
        container("asks", env=[{"name": "A", "value": "1"}, ALL, {"name": "Z", "value": "2"}]),
        container("twice", env=[VOID, ALL]),
        container("done", env=[VOID]),
        gpu_container("gpu", env=[ALL]),
        gpu_container("mig", "nvidia.com/mig-1g.10gb"),
        container("none", resources={"limits": {"nvidia.com/gpu": "0"}}, env=[ALL]),
        container("nic", resources={"limits": {"rdma/hca": "1"}}),
        initContainers=[
            container("init"),
            container("sidecar", restartPolicy="Always", env=[ALL]),
            gpu_container("gpu-init", env=[ALL]),
        ],
    )
    (created,), _ = policies.create(mixed, dry_run=True)
    assert variables(created) == {
        "plain": ["void"],
        "asks": ["void"],
        "twice": ["void"],
        "done": ["void"],
        "gpu": ["all"],
        "mig": [],
        "none": ["all"],
        "nic": ["void"],
    }
    assert variables(created, "initContainers") == {
        "init": ["void"],
        "sidecar": ["void"],
        "gpu-init": ["all"],
    }
    names = [entry["name"] for entry in created["spec"]["containers"][1]["env"]]
    assert names == ["A", "NVIDIA_VISIBLE_DEVICES", "Z"]


def test_a_pod_of_a_deployment_starts_with_void(policies: Installation) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container(env=[ALL])]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    policies.create(deployment)

    def running() -> list[Mapping[str, Any]]:
        found = policies.control_plane.get("pods", "-n", policies.namespace)["items"]
        return [item for item in found if item["status"].get("phase") == "Running"]

    until(lambda: len(running()) == 1, "the pod runs")
    assert variables(running()[0]) == {"main": ["void"]}


def test_a_variable_from_elsewhere_is_refused_with_what_to_do(policies: Installation) -> None:
    made, complaint = policies.create(from_field("from-field"))
    assert made == []
    assert (
        "sluice: [DeviceVariable] container main asks for no GPU, so its NVIDIA_VISIBLE_DEVICES"
        " must be void: leave the variable out"
    ) in complaint


def test_an_invalid_pod_gets_the_api_servers_own_message(policies: Installation) -> None:
    twins = pod("twins", container("a"), container("a"))
    empty = {**pod("empty"), "spec": {"containers": []}}
    made, complaint = policies.create(twins, empty)
    assert made == []
    assert 'spec.containers[1].name: Duplicate value: "a"' in complaint
    assert "spec.containers: Required value" in complaint


def test_a_pod_as_large_as_sluice_decides_on_is_within_the_cost_limit(
    policies: Installation,
) -> None:
    env = [{"name": f"SOME_VARIABLE_{number}", "value": "x"} for number in range(20)]
    resources = {"limits": {"cpu": "1m", "memory": "1Mi", "rdma/hca": "1"}}
    containers = [container(f"c{number}", env=env, resources=resources) for number in range(500)]
    (created,), complaint = policies.create(pod("large", *containers), dry_run=True)
    assert complaint == ""
    assert set(map(tuple, variables(created).values())) == {("void",)}


def test_a_debug_container_gets_void(policies: Installation) -> None:
    policies.create(pod("web"))
    policies.control_plane.kubectl(
        *("debug", "web", "-n", policies.namespace, "--image=registry.test/shell"),
        *("--container=shell", "--env=NVIDIA_VISIBLE_DEVICES=all"),
    )
    found = policies.control_plane.get("pod", "web", "-n", policies.namespace)
    assert variables(found, "ephemeralContainers") == {"shell": ["void"]}


def test_older_debug_containers_and_pods_can_still_be_debugged(installation: Installation) -> None:
    installation.create(pod("web"))
    debug = ("debug", "web", "-n", installation.namespace, "--image=registry.test/shell")
    installation.control_plane.kubectl(*debug, "--container=old")
    installation.apply(render_groups(installation.options())["admission-policies"])
    installation.wait_for_void()
    installation.control_plane.kubectl(*debug, "--container=new")
    found = installation.control_plane.get("pod", "web", "-n", installation.namespace)
    assert variables(found, "ephemeralContainers") == {"old": [], "new": ["void"]}
    assert variables(found) == {"main": []}


def test_without_the_mutation_the_demand_refuses(policies: Installation) -> None:
    kubectl = policies.control_plane.kubectl
    kubectl("delete", "mutatingadmissionpolicybinding", f"{policies.name}-set-void-pods")
    until(
        lambda: "must be void" in policies.create(pod("bare"), dry_run=True)[1],
        "a pod without void is refused",
    )
    (created,), _ = policies.create(pod("said", container(env=[VOID])), dry_run=True)
    assert variables(created) == {"main": ["void"]}


@pytest.mark.parametrize(
    "original",
    [
        pod("plain"),
        pod("said", container(env=[VOID])),
        pod("all-gpu", gpu_container()),
    ],
    ids=lambda original: str(original["metadata"]["name"]),
)
def test_a_container_that_a_webhook_adds_gets_void_too(
    policies: Installation,
    recorder: WebhookRecorder,
    certificates: CertificateFiles,
    original: Mapping[str, Any],
) -> None:
    """A policy that was skipped in the first round would not be called in the second."""
    added = {"op": "add", "path": "/spec/containers/-", "value": container("added", env=[ALL])}
    recorder.patch = lambda _path, request: (
        [added] if len(request["object"]["spec"]["containers"]) == 1 else []
    )
    options = policies.recorded_options(recorder, certificates)
    injector = render_groups(options)["webhooks"][0]
    entry = {**injector["webhooks"][0], "matchConditions": []}  # type: ignore[index] # a list
    policies.apply([{**injector, "webhooks": [entry]}])

    def created() -> list[Any]:
        return policies.create(original, dry_run=True)[0]

    until(lambda: len(created()[0]["spec"]["containers"]) == 2, "the webhook adds its container")
    assert variables(created()[0])["added"] == ["void"]


def test_an_installation_that_observes_changes_and_refuses_nothing(
    installation: Installation,
) -> None:
    # Webhooks that nobody answers, and admission policies, as while Sluice is down.
    groups = render_groups(installation.options(observe=True, url="https://127.0.0.1:1"))
    installation.apply([*groups["admission-policies"], *groups["webhooks"]])
    gate = {"schedulingGates": [{"name": "sluice.dev/quota"}]}
    pods = [pod("plain"), from_field("from-field"), pod("gpu", gpu_container(env=[ALL]), **gate)]

    def acts() -> bool:
        installation.create(*pods, dry_run=True)
        metrics = installation.control_plane.kubectl("get", "--raw=/metrics").stdout.splitlines()
        opened = [m for m in metrics if m.startswith("apiserver_admission_webhook_fail_open_count")]
        audited = [m for m in metrics if f'policy="{installation.name}-demand-void-pods"' in m]
        return any('"validate.sluice.dev"' in m for m in opened) and bool(audited)

    until(acts, "the API server has called in vain, and audited")
    created, complaint = installation.create(*pods)
    assert complaint == ""
    assert [variables(item)["main"] for item in created] == [[], [None], ["all"]]


def test_with_sluice_down_gpu_pods_are_refused_and_all_else_starts(
    policies: Installation,
) -> None:
    """So must the cluster's own pods, and Sluice's, or nothing could mend it."""
    system = f"{policies.name}-system"
    options = policies.options(
        url="https://127.0.0.1:1", only_namespaces=(policies.namespace, system, "kube-system")
    )
    policies.apply(render(options))
    kubectl = policies.control_plane.kubectl
    until(
        lambda: "validate.sluice.dev" in policies.create(pod("probe", gpu_container()))[1],
        "a GPU pod is refused",
    )
    created, complaint = policies.create(
        pod("plain", container(env=[ALL])), pod("gpu", gpu_container())
    )
    assert [item["metadata"]["name"] for item in created] == ["plain"]
    assert variables(created[0]) == {"main": ["void"]}
    assert 'failed calling webhook "validate.sluice.dev"' in complaint
    plugin = pod("device-plugin", gpu_container(env=[ALL]))
    kubectl("create", "-n", "kube-system", "--dry-run=server", "--filename=-", stdin=plugin)
    replicas = ("deployment", options.name, "-n", system)
    kubectl("rollout", "restart", *replicas)
    kubectl("rollout", "status", *replicas, f"--timeout={DEADLINE_SECONDS:g}s")


STATE = "state.sluice.dev/decision"


def patch_status(installation: Installation, user: str, metadata: Mapping[str, Any]) -> str:
    answer = installation.control_plane.kubectl(
        *("patch", "pod", "web", "-n", installation.namespace, "--subresource=status"),
        *("--type=merge", "--patch", json.dumps({"metadata": metadata})),
        user=user,
        check=False,
    )
    return str(answer.stderr)


@pytest.mark.parametrize("field", ["annotations", "labels"])
def test_only_sluice_changes_its_keys_through_the_status(
    installation: Installation, field: str
) -> None:
    control_plane = installation.control_plane
    username = f"{installation.name}-account"
    options = installation.options(account=username)
    installation.create(pod("web", labels={"app": "web"}))
    installation.apply(render_groups(options)["admission-policies"])
    control_plane.add_user(username, ("system:masters",))
    guarded = "only Sluice may write annotations and labels state.sluice.dev/*"

    def refused() -> bool:
        forged = {STATE: secrets.token_hex(3)}
        return guarded in patch_status(installation, "admin", {field: forged})

    until(refused, "the guard acts")
    assert patch_status(installation, "admin", {field: {"example.com/mine": "1"}}) == ""
    assert patch_status(installation, username, {field: {STATE: "real"}}) == ""
    for attempt in ({STATE: "forged"}, {STATE: ""}, {STATE: None}, {"state.sluice.dev/x": "1"}):
        assert guarded in patch_status(installation, "admin", {field: attempt})
    assert patch_status(installation, "admin", {field: {"example.com/mine": "2"}}) == ""
    found = control_plane.get("pod", "web", "-n", installation.namespace)
    assert found["metadata"][field][STATE] == "real"
