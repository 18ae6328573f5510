# SPDX-License-Identifier: Apache-2.0
"""The variables that expressions see, with their types and their place in the reference.

Types are written as in data/pod.json: `[]T` is a list, `{}T` a map from strings, `dyn` anything.
`request` and `namespaceObject` are as Kubernetes' admission CEL has them (apiserver
`pkg/admission/plugin/cel/compile.go`), so `request` has no uid and does not repeat the object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VARIABLES_NAME: Final = "variables"
POD: Final = "V1Pod"
REQUEST: Final = "AdmissionRequest"
QUANTITY: Final = "Quantity"


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of every expression. `type` is a message of the schema or `dyn`."""

    name: str
    type: str
    description: str


VARIABLES: Final = (
    Variable("object", POD, "The pod as it would be stored, in the API's JSON; null on DELETE."),
    Variable("oldObject", POD, "The pod before an UPDATE; null on CREATE."),
    Variable("request", REQUEST, "The admission request: who asks for what."),
    Variable("namespaceObject", "Namespace", "The namespace that the pod is in."),
    Variable("gpu", "Gpu", "What the pod asks for, summed as the scheduler does."),
    Variable("tenant", "Tenant", "The tenant that owns the namespace."),
    Variable(VARIABLES_NAME, "dyn", "The policy's own `variables`, as `variables.<name>`."),
)

ROOTS: Final = frozenset(variable.name for variable in VARIABLES) - {VARIABLES_NAME}

MESSAGES: Final[Mapping[str, Mapping[str, str]]] = {
    REQUEST: {
        "kind": "GroupVersionKind",
        "resource": "GroupVersionResource",
        "subResource": "string",
        "requestKind": "GroupVersionKind",
        "requestResource": "GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "GroupVersionKind": {"group": "string", "version": "string", "kind": "string"},
    "GroupVersionResource": {"group": "string", "version": "string", "resource": "string"},
    "UserInfo": {"username": "string", "uid": "string", "groups": "[]string", "extra": "{}dyn"},
    "Namespace": {
        "metadata": "NamespaceMetadata",
        "spec": "NamespaceSpec",
        "status": "NamespaceStatus",
    },
    "NamespaceMetadata": {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "labels": "{}string",
        "annotations": "{}string",
        "uid": "string",
        "creationTimestamp": "timestamp",
        "deletionGracePeriodSeconds": "int",
        "deletionTimestamp": "timestamp",
        "generation": "int",
        "resourceVersion": "string",
        "finalizers": "[]string",
    },
    "NamespaceSpec": {"finalizers": "[]string"},
    "NamespaceStatus": {"phase": "string"},
    "Gpu": {
        "devices": "int",
        "milli": "int",
        "memory": "int",
        "mode": "string",
        "exclusive": "bool",
        "containers": "[]GpuContainer",
    },
    "GpuContainer": {"name": "string", "kind": "string", "devices": "int", "resource": "string"},
    "Tenant": {"name": "string", "labels": "{}string", "quota": "TenantQuota"},
    "TenantQuota": {"gpus": "GpuQuota", "pools": "{}GpuQuota"},
    "GpuQuota": {"guarantee": "double", "ceiling": "double"},
    QUANTITY: {},
}

FIELD_NOTES: Final[Mapping[str, str]] = {
    "gpu.devices": "Whole devices or shares asked for, the effective request.",
    "gpu.milli": "The same as a charge: 1000 is a whole GPU.",
    "gpu.memory": "Usable GPU memory in MiB, on the smallest boards; 0 where it is not known.",
    "gpu.mode": 'The sharing mode ("Exclusive", "MIG", "MPS", "TimeSlice"); "" before the rewrite.',
    "gpu.exclusive": "Whether the pod asks for GPUs that it shares with nobody.",
    "gpu.containers": "One entry for each container that asks for GPUs.",
    "gpu.containers[].kind": '"Init", "Sidecar" or "App".',
    "gpu.containers[].devices": "What this container asks for.",
    "gpu.containers[].resource": "The name it asks by, such as `nvidia.com/gpu`.",
    "tenant.labels": "The labels of the Tenant document.",
    "tenant.quota.gpus.guarantee": "In GPUs; absent where none is set: guard it with `has()`.",
    "tenant.quota.gpus.ceiling": "In GPUs; absent where none is set: guard it with `has()`.",
    "tenant.quota.pools": "The same for each pool that the document names.",
}
