# SPDX-License-Identifier: Apache-2.0
"""The variables that CEL sees in one review, made when an expression first asks for them."""

from collections.abc import Mapping

from policies.admission.context import Context
from policies.admission.forms import Grant
from policies.cel import Scope
from policies.model.policy import Policy
from policies.pod.asked import effective_counts
from policies.vendors import Form


class Scopes:
    """Hands each policy its scope. `when` sees the GPUs as asked, `validate` as given."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._gpu: Mapping[str, object] = _asked(context)
        self._base: Scope | None = None
        self._by_policy: dict[str, Scope] = {}

    def before(self, policy: Policy) -> Scope:
        """Return the scope of a policy's conditions."""
        return self._scope(policy)

    def give(self, grants: tuple[Grant, ...], milli: int, *, exclusive: bool) -> None:
        """Let expressions see from now on what was given."""
        gpu = _given(grants, milli, exclusive=exclusive)
        if gpu != self._gpu:
            self._gpu, self._base, self._by_policy = gpu, None, {}

    def after(self, policy: Policy) -> Scope:
        """Return the scope of a policy's validations."""
        return self._scope(policy)

    def _scope(self, policy: Policy) -> Scope:
        found = self._by_policy.get(policy.name)
        if found is None:
            if self._base is None:
                self._base = self._context.policies.environment.scope(self._values())
            found = self._base.with_variables(
                [(variable.name, variable.expression) for variable in policy.variables]
            )
            self._by_policy[policy.name] = found
        return found

    def _values(self) -> Mapping[str, object]:
        context, request = self._context, self._context.request
        namespace = context.facts.cluster.namespaces.get(request.namespace)
        return {
            "object": context.pod.raw,
            "oldObject": request.old_object,
            "request": request.raw or {},
            "namespaceObject": {
                "metadata": {
                    "name": request.namespace,
                    "labels": dict(namespace.labels) if namespace else {},
                    "annotations": dict(namespace.annotations) if namespace else {},
                }
            },
            "gpu": self._gpu,
            "tenant": context.tenant.cel if context.tenant else {},
        }


def _asked(context: Context) -> Mapping[str, object]:
    counts = effective_counts((a.container.kind, a.counts) for a in context.asked)
    classify = context.policies.catalog.classify
    whole = sum(
        count
        for name, count in counts.items()
        if (gpu := classify(name)) is not None and gpu.form is Form.WHOLE
    )
    return {
        "devices": sum(counts.values()),
        "milli": 1000 * whole,
        "memory": 0,
        "mode": "",
        "exclusive": False,
        "containers": [
            {
                "name": a.container.name,
                "kind": str(a.container.kind),
                "devices": sum(a.counts.values()),
                "resource": next(iter(a.counts)),
            }
            for a in context.asked
            if a.counts
        ],
    }


def _given(grants: tuple[Grant, ...], milli: int, *, exclusive: bool) -> Mapping[str, object]:
    counts = effective_counts((g.asked.container.kind, {g.profile.name: g.count}) for g in grants)
    memories = {g.profile.name: g.profile.memory_mib for g in grants}
    known = all(memory is not None for memory in memories.values())
    return {
        "devices": sum(counts.values()),
        "milli": milli,
        "memory": sum((memories[n] or 0) * c for n, c in counts.items()) if known else 0,
        "mode": str(grants[0].profile.mode) if grants else "",
        "exclusive": exclusive,
        "containers": [
            {
                "name": g.asked.container.name,
                "kind": str(g.asked.container.kind),
                "devices": g.count,
                "resource": g.profile.resource,
            }
            for g in grants
        ],
    }
