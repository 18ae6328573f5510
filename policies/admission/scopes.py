# SPDX-License-Identifier: Apache-2.0
"""The variables that CEL sees in one review, made when an expression first asks for them."""

from collections.abc import Callable, Mapping

from policies.admission.charging import Cost, units
from policies.admission.context import Context
from policies.admission.grant import Grant
from policies.cel import Expression, Scope
from policies.pod.asked import effective_counts
from policies.vendors import Form


class Scopes:
    """The scopes of one review: `gpu` is what was asked in conditions, what was given after."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: Scope | None = None
        self._given: Scope | None = None
        self._gpu: Callable[[], Mapping[str, object]] = dict

    def asked(self) -> Scope:
        """Return the scope of conditions."""
        if self._asked is None:
            self._asked = self._scope(lambda: _asked(self._context))
        return self._asked

    def give(self, grants: tuple[Grant, ...], cost: Cost, *, exclusive: bool) -> None:
        """Let validations see what was given."""
        self._gpu = lambda: _given(grants, cost, exclusive=exclusive)

    def given(self, expression: Expression) -> Scope:
        """Return the scope of a validation; the conditions' where that makes no difference."""
        if "gpu" not in expression.uses:
            return self.asked()
        if self._given is None:
            self._given = self._scope(self._gpu)
        return self._given

    def _scope(self, gpu: Callable[[], Mapping[str, object]]) -> Scope:
        context = self._context
        tenant = context.tenant
        return context.policies.environment.scope(
            {
                "object": context.pod.raw,
                "oldObject": context.request.old_object,
                "request": context.request.raw or {},
                "namespaceObject": lambda: _namespace(context),
                "gpu": gpu,
                "tenant": tenant.cel if tenant else {},
            }
        )


def _namespace(context: Context) -> Mapping[str, object]:
    """Return the namespace as far as it is watched."""
    name = context.request.namespace
    known = context.facts.cluster.namespaces.get(name)
    return {
        "metadata": {
            "name": name,
            "labels": dict(known.labels) if known else {},
            "annotations": dict(known.annotations) if known else {},
        }
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


def _given(grants: tuple[Grant, ...], cost: Cost, *, exclusive: bool) -> Mapping[str, object]:
    return {
        "devices": sum(units(grants).values()),
        "milli": cost.milli,
        "memory": cost.memory_mib or 0,
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
