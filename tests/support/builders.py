# SPDX-License-Identifier: Apache-2.0
"""Builds what decisions are made from: policy sets, facts, pods and requests.

The policy sets are compiled from documents, as those that are served are. A request's objects go
through JSON once, so that no two parts of them are the same Python object.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias

import jsonpatch
import orjson

from policies.cel.environment import build_environment
from policies.decide import decide
from policies.documents.load import SourceText, load
from policies.model.decision import Decision
from policies.model.facts import ClusterFacts, Facts, NamespaceFacts, NodeFacts
from policies.model.policyset import PolicySet
from policies.model.request import JsonObject, Operation, Phase, Request, User
from policies.vendors import Catalog, build_catalog

Json: TypeAlias = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
SHARED: Final = "nvidia.com/gpu.shared"
MIG: Final = "nvidia.com/mig-1g.10gb"
EXCLUSIVE: Final = "nvidia.com/gpu-exclusive"

NOW: Final = datetime(2031, 5, 17, 12, 0, tzinfo=UTC)
DEVELOPER: Final = User("dana@example.com", groups=("system:authenticated",))
SLUICE: Final = User("system:serviceaccount:sluice:sluice")

TOLERATION: Final[Json] = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
"""What every NVIDIA profile demands."""

REFERENCE: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: chat}
spec:
  namespaces: {names: [chat, chat-staging]}
  quota: {gpus: {guarantee: 2, ceiling: 4}}
  profiles: [slice-4]
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: vision}
spec:
  namespaces: {names: [vision]}
  quota: {gpus: {ceiling: 3}}
  profiles: ["h100-*"]
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: research}
spec:
  namespaces: {selector: {matchLabels: {team: research}}}
  quota: {gpus: {guarantee: 8, ceiling: 16}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: slice-4}
spec: {mode: TimeSlice, replicas: 4, products: [NVIDIA-H100-80GB-HBM3]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: training-exclusive}
spec:
  order: 10
  match:
    when:
    - name: says-so
      expression: object.metadata.?annotations[?"nvidia.com/gpu-exclusive"].orValue("") == "true"
  rewrite: {profile: whole}
  exclusive: true
  validate:
  - name: fits-one-node
    expression: gpu.devices <= 8
    messageExpression: '"asks for " + string(gpu.devices) + " GPUs; a node has 8"'
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: vision-mig}
spec:
  order: 100
  match: {tenants: [vision]}
  rewrite: {profile: h100-1g.10gb}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: no-raw-gpu}
spec:
  order: 1000
  match: {tenants: [chat, research]}
  rewrite: {profile: slice-4}
"""
"""Three tenants: chat gets time slices, vision MIG instances, research what it asks for."""


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    """Return the shipped catalog, read once."""
    return build_catalog()


@lru_cache(maxsize=64)
def policy_set(text: str = REFERENCE) -> PolicySet:
    """Compile documents; a test's documents must have no error."""
    source = SourceText("policies.yaml", text.encode())
    result = load([source], catalog=catalog(), environment=build_environment())
    assert result.policy_set is not None, "\n".join(map(str, result.problems))
    return result.policy_set


def facts(
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    nodes: Iterable[NodeFacts] | None = None,
) -> Facts:
    """Return facts; unless said otherwise a namespace of each tenant, and nodes not known."""
    labels = namespaces or {"chat": {}, "vision": {}, "lab": {"team": "research"}, "other": {}}
    known = {name: NamespaceFacts(name, found) for name, found in labels.items()}
    return Facts(ClusterFacts(known, None if nodes is None else tuple(nodes)), NOW)


def container(name: str = "main", gpus: object = None, resource: str = GPU, **fields: Any) -> Json:
    """Return a container with so many GPUs, in limits and requests as the API server sends it."""
    built: Json = {"name": name, "image": "registry.example/app:1", **fields}
    if gpus is not None:
        built["resources"] = {"limits": {resource: gpus}, "requests": {resource: gpus}}
    return built


def pod(*containers: Json, namespace: str = "chat", **parts: Any) -> Json:
    """Return a pod. `annotations` and `labels` go into its metadata, other parts into its spec."""
    metadata: Json = {"name": "llm", "namespace": namespace}
    for key in ("annotations", "labels", "ownerReferences"):
        if key in parts:
            metadata[key] = parts.pop(key)
    spec = {"containers": list(containers or [container(gpus="1")]), **parts}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def request(found: JsonObject | None, **changes: Any) -> Request:
    """Return the creation of a pod by a developer; `changes` are fields of Request."""
    namespace = ""
    if found is not None and isinstance(found.get("metadata"), dict):
        namespace = str(found["metadata"].get("namespace", ""))  # type: ignore[attr-defined]  # told just before
    made = Request(
        phase=Phase.MUTATE,
        operation=Operation.CREATE,
        group="",
        resource="pods",
        subresource="",
        namespace=namespace,
        name="",
        user=DEVELOPER,
        object=found,
        old_object=None,
        kind="Pod",
    )
    made = replace(made, **changes)
    return replace(made, object=_parsed(made.object), old_object=_parsed(made.old_object))


def mutate(found: JsonObject, policies: PolicySet | None = None, **changes: Any) -> Decision:
    """Return what the mutating pass decides."""
    given = changes.pop("facts", None) or facts()
    return decide(policies or policy_set(), given, request(found, **changes))


def validate(found: JsonObject, policies: PolicySet | None = None, **changes: Any) -> Decision:
    """Return what the validating pass decides."""
    return mutate(found, policies, phase=Phase.VALIDATE, **changes)


def update(old: JsonObject, new: JsonObject, **changes: Any) -> Decision:
    """Return what the validating pass decides on a pod's update."""
    return validate(new, operation=Operation.UPDATE, old_object=old, **changes)


def rewritten(found: JsonObject, policies: PolicySet | None = None, **changes: Any) -> Json:
    """Return the pod as it comes out of the mutating pass, which must allow it."""
    decision = mutate(found, policies, **changes)
    assert decision.allowed, decision.message
    return patched(found, decision)


def patched(found: JsonObject, decision: Decision) -> Json:
    """Apply a decision's patch with a library that knows nothing of Sluice."""
    result: Json = jsonpatch.apply_patch(
        orjson.loads(orjson.dumps(found)), orjson.loads(orjson.dumps(decision.patch))
    )
    return result


def _parsed(found: JsonObject | None) -> JsonObject | None:
    parsed: JsonObject | None = orjson.loads(orjson.dumps(found))
    return parsed
