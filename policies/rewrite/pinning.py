# SPDX-License-Identifier: Apache-2.0
"""Put pins onto the spec of a gated pod, within what Kubernetes lets change there.

A gated pod may be narrowed only: new labels in the node selector, new expressions in each required
term, a term only where there was none. Source: Kubernetes KEP-3838, validatePodUpdate.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from policies.model.labels import Expression, Operator
from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at, strings_at
from policies.rewrite.lists import ensured
from policies.rewrite.project import REQUIRED, required_terms, selects, with_fields


class Pins(Protocol):
    """What keeps a pod within the pool that it is charged to (policies.quota.pools.Pins)."""

    @property
    def node_selector(self) -> Mapping[str, str]:
        """Labels to select."""
        ...

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Requirements beyond labels with one value."""
        ...


def pinned(spec: JsonObject, pins: Pins) -> JsonObject:
    """Return the spec narrowed to a pool; itself if it is already. Raises MalformedError.

    A label that the pod selects with another value cannot be changed: it is demanded as affinity,
    so that the pod runs nowhere rather than in another pool.
    """
    own = strings_at(spec, "nodeSelector")
    selector = {**own, **{k: v for k, v in pins.node_selector.items() if k not in own}}
    contradicted = [
        Expression(key, Operator.IN, (value,))
        for key, value in pins.node_selector.items()
        if selector[key] != value
    ]
    expressions = [e.to_json() for e in (*contradicted, *pins.expressions)]
    changes: dict[str, object] = {}
    if len(selector) > len(own):
        changes["nodeSelector"] = selector
    if expressions:
        changes["affinity"] = _narrowed(object_at(spec, "affinity"), expressions)
    return with_fields(spec, changes)


def _narrowed(affinity: JsonObject, expressions: Sequence[JsonObject]) -> JsonObject:
    terms = required_terms(affinity)
    wanted: list[JsonObject] = [_term(term, expressions) for term in terms]
    wanted = wanted or [{"matchExpressions": list(expressions)}]
    if len(wanted) == len(terms) and all(a is b for a, b in zip(wanted, terms, strict=True)):
        return affinity
    node = object_at(affinity, "nodeAffinity")
    required = {**object_at(node, REQUIRED), "nodeSelectorTerms": wanted}
    return {**affinity, "nodeAffinity": {**node, REQUIRED: required}}


def _term(term: JsonObject, expressions: Sequence[JsonObject]) -> JsonObject:
    if not selects(term):
        return term  # it matches no node, and must go on matching none
    own = objects_at(term, "matchExpressions")
    return with_fields(term, {"matchExpressions": ensured(own, (), expressions)})
