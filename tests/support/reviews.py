# SPDX-License-Identifier: Apache-2.0
"""Builders of AdmissionReviews and pods, in the shape in which an API server sends them."""

from collections.abc import Mapping
from typing import Any

import orjson

Json = dict[str, Any]

UID = "b91cef9d-2638-43a1-a6f3-f1ed13fe04bf"
NAMESPACE = "team-a"


def gpu_container(name: str = "main", gpus: str = "1", resource: str = "nvidia.com/gpu") -> Json:
    """Return a container with this many GPUs; limits and requests, as the API server defaults."""
    return container(name) | {
        "resources": {"limits": {resource: gpus}, "requests": {resource: gpus}},
    }


def container(name: str = "main") -> Json:
    """Return a container without GPUs."""
    return {"name": name, "image": "registry.example/app:1", "resources": {}}


def pod(*containers: Json, name: str = "demo", **spec: Any) -> Json:
    """Return a pod as it reaches the mutating pass; keyword arguments are fields of its spec."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "creationTimestamp": None, "labels": {"app": "demo"}},
        "spec": {
            "containers": list(containers or (gpu_container(),)),
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{condition}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for condition in ("not-ready", "unreachable")
            ],
            **spec,
        },
        "status": {},
    }


def request(obj: object, **fields: Any) -> Json:
    """Return the request of a pod's creation; keyword arguments replace fields of it."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return {
        "uid": UID,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "namespace": NAMESPACE,
        "operation": "CREATE",
        "userInfo": {"username": "jane", "uid": "jane", "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **fields,
    }


def review(given: object = None, **fields: Any) -> Json:
    """Return the whole AdmissionReview; by default of a pod with one GPU."""
    return envelope(request(pod() if given is None else given, **fields))


def envelope(given: object) -> Json:
    """Return a request in its envelope."""
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": given}


def body(given: Mapping[str, object]) -> bytes:
    """Return it as it is sent."""
    return orjson.dumps(given)
