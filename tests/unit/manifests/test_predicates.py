# SPDX-License-Identifier: Apache-2.0
"""The API server's expressions catch all that the checks look for, run on Sluice's own CEL."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from policies.cel import Environment, ResultType, build_environment
from policies.checks import device_annotations, device_variables, host_access
from policies.vendors import build_catalog
from reconciler.manifests.predicates import Predicates, pod_changes_what_is_owned

CATALOG = build_catalog()

Judge = Callable[[Mapping[str, Any]], object]


@pytest.fixture(scope="module")
def environment() -> Environment:
    return build_environment()


@pytest.fixture(scope="module")
def touches_gpus(environment: Environment) -> Judge:
    text = Predicates(CATALOG).pod_touches_gpus("object")
    compiled = environment.compile(text, ResultType.BOOL)
    return lambda pod: compiled.evaluate(environment.scope({"object": pod}))


def pod(container: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", **spec.pop("metadata", {})}
    main = {"name": "main", "image": "image", **(container or {})}
    return {"metadata": metadata, "spec": {"containers": [main], **spec}}


def with_host_path(path: str) -> dict[str, Any]:
    return pod(volumes=[{"name": "v", "hostPath": {"path": path}}])


def test_a_plain_pod_is_none_of_our_business(touches_gpus: Judge) -> None:
    plain = pod(
        {
            "resources": {"limits": {"cpu": "1", "rdma/hca": "1"}},
            "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
            "volumeMounts": [{"name": "v", "mountPath": "/var/run/secrets"}],
        },
        metadata={"annotations": {"example.com/a": "b"}, "labels": {"app": "a"}},
    )
    assert touches_gpus(plain) is False
    assert touches_gpus({"metadata": {}, "spec": {"containers": None}}) is False


@pytest.mark.parametrize("prefix", CATALOG.gpu_prefixes)
@pytest.mark.parametrize("spelled", [str, str.upper])
def test_every_gpu_like_resource_counts(
    touches_gpus: Judge, prefix: str, spelled: Callable[[str], str]
) -> None:
    name = spelled(f"{prefix}x")
    assert CATALOG.classify(name) is not None
    for amounts in ("limits", "requests"):
        assert touches_gpus(pod({"resources": {amounts: {name: "0"}}})) is True


@pytest.mark.parametrize("name", sorted(device_variables.EVERYWHERE))
def test_every_variable_that_opens_devices_counts(touches_gpus: Judge, name: str) -> None:
    assert touches_gpus(pod({"env": [{"name": name, "value": "x"}]})) is True


@pytest.mark.parametrize(
    "key", [*(f"{p}x" for p in device_annotations.PREFIXES), *sorted(device_annotations.NAMES)]
)
def test_every_annotation_that_allocates_devices_counts(touches_gpus: Judge, key: str) -> None:
    assert touches_gpus(pod(metadata={"annotations": {key: ""}})) is True


@pytest.mark.parametrize("path", host_access.DEVICE_PATHS)
@pytest.mark.parametrize("spelled", ["{}", "{}/x", "/{}", "/.{}/"])
def test_every_device_path_counts_but_the_kubelets(
    touches_gpus: Judge, path: str, spelled: str
) -> None:
    is_kubelets = path.startswith("/var/lib/kubelet/")
    assert touches_gpus(with_host_path(spelled.format(path))) is not is_kubelets


@pytest.mark.parametrize("path", host_access.MOUNT_PATHS)
@pytest.mark.parametrize("spelled", ["{}/0", "/{}", "/x/..{}/0", "/x/../x/..{}"])
def test_every_mount_that_selects_devices_counts(
    touches_gpus: Judge, path: str, spelled: str
) -> None:
    mount = {"name": "v", "mountPath": spelled.format(path)}
    assert touches_gpus(pod({"volumeMounts": [mount]})) is True


def test_a_mount_path_counts_without_a_slash_at_its_head(touches_gpus: Judge) -> None:
    for path in host_access.MOUNT_PATHS:
        mount = {"name": "v", "mountPath": path.lstrip("/")}
        assert touches_gpus(pod({"volumeMounts": [mount]})) is True


@pytest.mark.parametrize("section", ["initContainers", "ephemeralContainers"])
def test_containers_of_every_kind_count(touches_gpus: Judge, section: str) -> None:
    other = {"name": "other", "env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]}
    spec: dict[str, Any] = {section: [other]}
    assert touches_gpus(pod(**spec)) is True


def test_the_expression_for_updates_compiles_against_the_schema_of_pods(
    environment: Environment,
) -> None:
    compiled = environment.compile(pod_changes_what_is_owned(), ResultType.BOOL)
    before = pod(metadata={"annotations": {"sluice.dev/a": "1"}})
    after = pod(metadata={"annotations": {"sluice.dev/a": "2"}})
    tolerant = pod(tolerations=[{"operator": "Exists"}])
    for new, old, changed in (
        (after, before, True),
        (before, before, False),
        (tolerant, pod(), True),
        (tolerant, tolerant, False),
    ):
        scope = environment.scope({"object": new, "oldObject": old})
        assert compiled.evaluate(scope) is changed
