# SPDX-License-Identifier: Apache-2.0
"""Which changes of pods the API server sends to which webhook entry."""

import json
from collections.abc import Mapping
from typing import Any

from policies.model.keys import BREAK_GLASS_GROUP
from tests.integration.manifests.calls import (
    GATE,
    OTHER,
    VALIDATE,
    sent,
)
from tests.integration.manifests.installation import (
    Installation,
    container,
    gpu_container,
    pod,
)
from tests.support.webhook_recorder import WebhookRecorder

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


def test_who_breaks_the_glass_is_not_asked_about_for_the_gate_and_for_all_else(
    registered: Installation, recorder: WebhookRecorder
) -> None:
    both = [*GATE, {"name": "example.com/other"}]
    registered.create(pod("gpu", gpu_container(), schedulingGates=both))
    somebody = ("--as=somebody", "--as-group=system:masters")
    breaking = (*somebody, f"--as-group={BREAK_GLASS_GROUP}")
    recorder.take()
    patch(registered, "gpu", {"metadata": {"annotations": {"state.sluice.dev/x": "1"}}}, *breaking)
    assert sent(recorder) == {"gpu": {VALIDATE}}
    others = {"spec": {"schedulingGates": [{"name": "example.com/other", "$patch": "delete"}]}}
    patch(registered, "gpu", others, *breaking)
    assert sent(recorder) == {"gpu": {VALIDATE}}
    ours = {"spec": {"schedulingGates": [{"name": GATE[0]["name"], "$patch": "delete"}]}}
    patch(registered, "gpu", ours, *somebody, "--dry-run=server")
    assert sent(recorder) == {"gpu": {VALIDATE}}
    patch(registered, "gpu", ours, *breaking)
    assert sent(recorder) == {}


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
