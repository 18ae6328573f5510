# SPDX-License-Identifier: Apache-2.0
"""Which objects of custom kinds the API server sends to the webhook."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from certs.files import CertificateFiles
from policies.model.workload import WorkloadKind
from policies.workloads.reading import read_kind
from reconciler.manifests.render import render_groups
from tests.controlplane import ControlPlane
from tests.integration.manifests.calls import CUSTOM_WORKLOADS, GPU, sent
from tests.integration.manifests.installation import (
    Installation,
    container,
    entry_paths,
    gpu_container,
)
from tests.support.builders import Json
from tests.support.custom_kinds import definitions
from tests.support.webhook_recorder import WebhookRecorder
from tests.support.workloads import kind_of, workload

TEMPLATE: Json = {"path": "spec.pods.*"}
MODEL = read_kind(
    {"group": "example.test", "resource": "models", "kind": "Model", "templates": [TEMPLATE]}
)


def job(name: str, *containers: object, **metadata: object) -> Json:
    found = {"spec": {"containers": list(containers or [gpu_container()])}}
    made = workload(kind_of("PyTorchJob"), found, name=name, **metadata)
    del made["metadata"]["namespace"]
    return made


def test_custom_kinds_are_sent_whatever_is_in_them(
    custom_kinds: tuple[WorkloadKind, ...], registered: Installation, recorder: WebhookRecorder
) -> None:
    found = {"spec": {"containers": [gpu_container()]}}
    objects = [workload(kind, found, name=kind.resource) for kind in custom_kinds]
    for item in objects:
        del item["metadata"]["namespace"]

    created, complaint = registered.create(*objects, job("plain", container()), dry_run=True)

    assert (len(created), complaint) == (len(custom_kinds) + 1, "")
    expected = {kind.resource: {CUSTOM_WORKLOADS} for kind in custom_kinds}
    assert sent(recorder) == {**expected, "plain": {CUSTOM_WORKLOADS}}


def test_only_changes_of_a_custom_objects_spec_are_sent_and_no_parts_of_another(
    custom_kinds: tuple[WorkloadKind, ...], registered: Installation, recorder: WebhookRecorder
) -> None:
    kubectl = registered.control_plane.kubectl
    here = ("pytorchjob", "whole", "-n", registered.namespace)
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "a", "uid": "1"}
    parts = [
        job("part", ownerReferences=[{**owner, "controller": True}]),
        job("owned", ownerReferences=[owner]),
    ]
    registered.create(job("whole"), *parts)
    assert sent(recorder) == {"whole": {CUSTOM_WORKLOADS}, "owned": {CUSTOM_WORKLOADS}}

    kubectl("label", *here, "a=b")
    kubectl("patch", *here, "--type=merge", "--subresource=status", '--patch={"status":{"a":1}}')
    assert sent(recorder) == {}
    kubectl("patch", *here, "--type=merge", '--patch={"spec":{"nprocPerNode":"2"}}')
    assert sent(recorder) == {"whole": {CUSTOM_WORKLOADS}}


@pytest.fixture
def models(control_plane: ControlPlane) -> Iterator[None]:
    """A kind that nobody ships."""
    listed = definitions([replace(MODEL, versions=("v1", "v2"))])[0]
    control_plane.kubectl("create", "--filename=-", stdin=listed)
    control_plane.wait_kinds(["models.example.test"])
    yield
    control_plane.kubectl("delete", "--wait=false", "crd/models.example.test")


def test_a_kind_of_the_settings_is_sent_in_every_version(
    models: None,
    installation: Installation,
    recorder: WebhookRecorder,
    certificates: CertificateFiles,
) -> None:
    options = installation.recorded_options(recorder, certificates)
    catalog = replace(options.catalog, workloads=options.catalog.workloads.joined([MODEL]))
    rendered = render_groups(replace(options, catalog=catalog))["webhooks"]
    installation.apply(entry_paths(rendered))
    installation.wait_for_calls(recorder, GPU)
    objects = [
        {"apiVersion": f"example.test/{version}", "kind": "Model", "metadata": {"name": version}}
        for version in ("v1", "v2")
    ]

    created, complaint = installation.create(*objects, dry_run=True)

    assert (len(created), complaint) == (2, "")
    assert sent(recorder) == {"v1": {CUSTOM_WORKLOADS}, "v2": {CUSTOM_WORKLOADS}}
