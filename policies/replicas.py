# SPDX-License-Identifier: Apache-2.0
"""Decides once on pods that differ in nothing that decisions read, such as replicas.

Every pod is decided on without what no decision reads, so the decision is a function of what is
left by construction; pods of which the same is left get the same decision, found by its digest.
"""

import hashlib
from collections.abc import Callable
from typing import Final

import orjson

from policies.cel.reads import Reads, merged, pruned
from policies.model.decision import Decision
from policies.model.facts import ClusterFacts, Facts
from policies.model.policyset import PolicySet
from policies.model.request import JsonObject, Operation, Phase, Request, User
from policies.model.tenant import WhenOverQuota
from policies.pod.reading import MalformedError
from policies.pod.reads import WITH_VOLUMES, WITHOUT_VOLUMES, mounts_host

_MOST: Final = 1024
"""So many decisions are remembered; then all are forgotten."""

_LONGEST_BYTES: Final = 64 * 1024
"""Decisions on larger pods are not: they grow with the pod, and would fill the memory."""

Decide = Callable[[PolicySet, Facts, Request], Decision]
_Usage = tuple[object, ...]
_Key = tuple[bytes, Phase, str, User, int | None, tuple[bool, ...], _Usage]


class Replicas:
    """Remembers decisions on created pods for one policy set and one picture of the cluster."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self._policies: PolicySet | None = None
        self._cluster: ClusterFacts | None = None
        self._decisions: dict[_Key, Decision] = {}
        self._reads: tuple[Reads, Reads] = (None, None)
        self._request_reads: Reads = None
        self._has_denying = False

    def decide(self, policies: PolicySet, facts: Facts, request: Request) -> Decision:
        """Return what the wrapped function decides, which must be pure."""
        if not _creates_pod(request):
            return self._decide(policies, facts, request)
        if self._policies is not policies or self._cluster is not facts.cluster:
            self._renew(policies, facts)
        found = self._readable(request)
        if found is None:
            return self._decide(policies, facts, request)
        readable, digest = found
        spared = tuple([exemption.expires_at > facts.now for exemption in policies.exemptions])
        usage = _usage(policies, facts, request.namespace) if self._has_denying else ()
        key = (
            *(digest, request.phase, request.namespace, request.user, facts.stale_seconds),
            *(spared, usage),
        )
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(policies, facts, readable)
            if len(self._decisions) >= _MOST:
                self._decisions = {}
            self._decisions[key] = decision
        return decision

    def _renew(self, policies: PolicySet, facts: Facts) -> None:
        self._policies, self._cluster, self._decisions = policies, facts.cluster, {}
        self._has_denying = any(
            tenant.when_over_quota is WhenOverQuota.DENY for tenant in policies.tenants.values()
        )
        reads = policies.environment.reads("object")
        self._request_reads = policies.environment.reads("request")
        self._reads = (merged(WITHOUT_VOLUMES, reads), merged(WITH_VOLUMES, reads))

    def _readable(self, request: Request) -> tuple[Request, bytes] | None:
        """Return the request without what is not read, and a digest of what varies in it.

        None for an object that cannot be written as JSON, which the decision itself refuses, and
        for a large one.
        """
        raw = request.object or {}
        try:
            pod = pruned(raw, self._reads[mounts_host(raw)])
            asked = pruned(request.raw or {}, self._request_reads)
            text = orjson.dumps((pod, asked))
        except (MalformedError, TypeError):
            return None
        if len(text) > _LONGEST_BYTES:
            return None
        return _without(request, pod, asked), hashlib.blake2b(text).digest()


def _usage(policies: PolicySet, facts: Facts, namespace: str) -> _Usage:
    """Return what decisions on a namespace's pods read of usage: only where quota denies."""
    known = facts.cluster.namespaces.get(namespace)
    owners = policies.owners(namespace, known.labels if known is not None else {})
    found = [
        facts.usage[tenant.name]
        for tenant in owners
        if tenant.when_over_quota is WhenOverQuota.DENY and tenant.name in facts.usage
    ]
    return tuple(
        (tuple(u.milli_by_pool.items()), u.memory_mib, tuple(u.counts.items())) for u in found
    )


def _creates_pod(request: Request) -> bool:
    return (
        request.resource == "pods"
        and request.operation is Operation.CREATE
        and not request.group
        and not request.subresource
        and request.object is not None
    )


def _without(request: Request, pod: JsonObject, asked: JsonObject) -> Request:
    """Return the request with nothing in it but what is in the key."""
    return Request(
        phase=request.phase,
        operation=request.operation,
        group=request.group,
        resource=request.resource,
        subresource=request.subresource,
        namespace=request.namespace,
        name="",
        user=request.user,
        object=pod,
        old_object=None,
        raw=asked,
    )
