# SPDX-License-Identifier: Apache-2.0
"""The pod that is measured: 2.8 kB of JSON with one GPU, as one of a Deployment reaches /mutate."""

from typing import Any, Final

import orjson

from tests.support.reviews import envelope, request

NAMESPACE: Final = "chat"


def gpu_pod(number: int = 0) -> dict[str, Any]:
    """Return the pod, whose size is part of the measurement and is checked by a test.

    Numbers make pods of different Deployments of it: other labels, arguments and variables.
    """
    name = f"llm-server-{number:04d}-58"
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "generateName": f"{name}-",
            "creationTimestamp": None,
            "labels": {"app": "llm-server", "workload": "inference", "pod-template-hash": name},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8000"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": name,
                    "uid": "5a2c0b6e-6d0f-4b53-9a35-0d8b5a0a9a11",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "volumes": [
                {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
                _token_volume(),
            ],
            "containers": [_server(number), _proxy()],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "llm-server",
            "serviceAccount": "llm-server",
            "securityContext": {},
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
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {},
    }


def gpu_review(number: int = 0) -> bytes:
    """Return its creation as the API server sends it to /mutate."""
    user = {
        "username": "system:serviceaccount:kube-system:replicaset-controller",
        "uid": "2f5b7c14-6d0c-4f5f-8f3e-6f1f2a2f0c77",
        "groups": ["system:serviceaccounts", "system:authenticated"],
    }
    return orjson.dumps(envelope(request(gpu_pod(number), namespace=NAMESPACE, userInfo=user)))


def _server(number: int) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}
    return {
        "name": "server",
        "image": "registry.example.com/llm/server:1.24.0",
        "args": ["--model=/models/llama-3-8b", "--port=8000", "--max-model-len=8192"],
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
        "env": [
            {"name": "HF_HOME", "value": f"/models/cache-{number:04d}"},
            {"name": "LOG_LEVEL", "value": "info"},
            {
                "name": "API_KEY",
                "valueFrom": {"secretKeyRef": {"name": "llm-server", "key": "api-key"}},
            },
        ],
        "resources": {"limits": amounts, "requests": amounts},
        "volumeMounts": [
            {"name": "models", "mountPath": "/models"},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - a mount of the pod
            _token_mount(),
        ],
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": 8000, "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        **_container_defaults(),
    }


def _proxy() -> dict[str, Any]:
    amounts = {"cpu": "500m", "memory": "256Mi"}
    return {
        "name": "proxy",
        "image": "registry.example.com/mesh/proxy:2.9",
        "resources": {"limits": amounts, "requests": amounts},
        "volumeMounts": [_token_mount()],
        **_container_defaults(),
    }


def _container_defaults() -> dict[str, Any]:
    return {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _token_mount() -> dict[str, Any]:
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    return {"name": "kube-api-access", "readOnly": True, "mountPath": path}


def _token_volume() -> dict[str, Any]:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    return {"name": "kube-api-access", "projected": {"sources": sources, "defaultMode": 420}}
