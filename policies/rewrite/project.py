# SPDX-License-Identifier: Apache-2.0
"""Put a demand onto a pod, in the place of what an earlier pass has put there.

With the empty demand this is `restore(pod, claim)` of the design: the pod as its user and all
other webhooks made it. Unchanged parts stay the same objects, which makes the patch cheap to find.
Lists keep their order, and what is demanded and there already stays where it is, so that a second
pass changes nothing whatever others have added since.
"""

from collections.abc import Mapping, Sequence

from policies.model.keys import QUOTA_GATE, STATE_PREFIX
from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at, strings_at
from policies.rewrite.claim import Claim
from policies.rewrite.containers import project_containers
from policies.rewrite.demand import NOTHING, Demand
from policies.rewrite.lists import ensured
from policies.vendors import Catalog

_GATE: JsonObject = {"name": QUOTA_GATE}
_NO_CLAIM = Claim(generation="")


def restore(pod: JsonObject, claim: Claim | None, catalog: Catalog) -> JsonObject:
    """Return the original pod: ours taken out, old values back. Raises MalformedError."""
    return project(pod, claim, NOTHING, catalog)


def project(pod: JsonObject, claim: Claim | None, demand: Demand, catalog: Catalog) -> JsonObject:
    """Return the pod with the demand instead of what the claim lists. Raises MalformedError."""
    was = claim or _NO_CLAIM
    spec = object_at(pod, "spec")
    changes = project_containers(spec, was, demand, catalog)
    if demand.gate or "schedulingGates" in spec:
        gates = objects_at(spec, "schedulingGates")
        changes["schedulingGates"] = ensured(gates, (_GATE,), (_GATE,) if demand.gate else ())
    if demand.tolerations or was.tolerations:
        tolerations = objects_at(spec, "tolerations")
        changes["tolerations"] = ensured(tolerations, was.tolerations, demand.tolerations)
    if demand.node_selector or was.node_selector:
        changes["nodeSelector"] = _selector(strings_at(spec, "nodeSelector"), was, demand)
    if demand.expressions or was.expressions or demand.anti_affinity or was.anti_affinity:
        affinity = _affinity(object_at(spec, "affinity"), was, demand)
        changes["affinity"] = _apart(affinity, was, demand)
    metadata = object_at(pod, "metadata")
    new_metadata = _with_own_labels(metadata, demand)
    new_spec = with_fields(spec, changes)
    if new_metadata is metadata and new_spec is spec:
        return pod
    # Every pod has both, also where nothing is left in them.
    return {**pod, "metadata": new_metadata, "spec": new_spec}


def _with_own_labels(metadata: JsonObject, demand: Demand) -> JsonObject:
    """Return the metadata with these of the keys that only Sluice writes, and no others."""
    changes: dict[str, object] = {}
    for section, wanted in (("annotations", {}), ("labels", demand.labels)):
        found = strings_at(metadata, section)
        own = {key: value for key, value in found.items() if key.startswith(STATE_PREFIX)}
        if own != wanted:
            others = {key: value for key, value in found.items() if key not in own}
            changes[section] = {**others, **wanted}
    return with_fields(metadata, changes)


def with_fields(parent: JsonObject, changes: Mapping[str, object]) -> JsonObject:
    """Return the parent with these fields; itself if none differs.

    An empty field is left out where the parent has none.
    """
    merged: dict[str, object] | None = None
    for key, value in changes.items():
        old = parent.get(key)
        if value is old or not (value or old):
            continue
        merged = dict(parent) if merged is None else merged
        if value:
            merged[key] = value
        else:
            del merged[key]
    return parent if merged is None else merged


def _selector(received: Mapping[str, str], was: Claim, demand: Demand) -> Mapping[str, str]:
    wanted = demand.node_selector
    stale = {k for k, v in was.node_selector.items() if k not in wanted and received.get(k) == v}
    if not stale and all(received.get(k) == v for k, v in wanted.items()):
        return received
    return {**{k: v for k, v in received.items() if k not in stale}, **wanted}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def required_terms(affinity: JsonObject) -> Sequence[JsonObject]:
    """Return the required node selector terms, the empty ones too. Raises MalformedError."""
    required = object_at(object_at(affinity, "nodeAffinity"), REQUIRED)
    return objects_at(required, "nodeSelectorTerms")


def _affinity(received: JsonObject, was: Claim, demand: Demand) -> JsonObject:
    """Every term must hold our expressions, since terms are alternatives."""
    terms = required_terms(received)
    wanted = _terms(terms, was, demand)
    if wanted is terms:
        return received
    node = object_at(received, "nodeAffinity")
    if wanted:
        required = {**object_at(node, REQUIRED), "nodeSelectorTerms": wanted}
        return {**received, "nodeAffinity": {**node, REQUIRED: required}}
    # The only term was made by Sluice, maybe with the fields around it: empty ones mean nothing.
    rest = {key: value for key, value in node.items() if key != REQUIRED}
    others = {key: value for key, value in received.items() if key != "nodeAffinity"}
    return {**others, "nodeAffinity": rest} if rest else others


def _apart(received: JsonObject, was: Claim, demand: Demand) -> JsonObject:
    """Keep the pod apart from others by required anti-affinity; all of its terms must hold."""
    pods = object_at(received, "podAntiAffinity")
    terms = objects_at(pods, REQUIRED)
    wanted = ensured(terms, was.anti_affinity, demand.anti_affinity)
    if wanted is terms:
        return received
    return with_fields(received, {"podAntiAffinity": with_fields(pods, {REQUIRED: wanted})})


def _terms(terms: Sequence[JsonObject], was: Claim, demand: Demand) -> Sequence[JsonObject]:
    if not terms:
        return [{"matchExpressions": list(demand.expressions)}] if demand.expressions else terms
    projected = [_term(term, was, demand) for term in terms]
    if all(a is b for a, b in zip(projected, terms, strict=True)):
        return terms
    if not was.affinity_created or any(map(selects, projected)):
        return projected
    # Ours was the only term. Beside one of others it stays, emptied: it is an alternative to it.
    return [new for new, old in zip(projected, terms, strict=True) if not selects(old)]


def selects(term: JsonObject) -> bool:
    """Tell whether a node selector term can match: one without any requirement matches no node."""
    return bool(objects_at(term, "matchExpressions") or objects_at(term, "matchFields"))


def _term(term: JsonObject, was: Claim, demand: Demand) -> JsonObject:
    if not selects(term):
        return term  # it must go on matching none
    expressions = ensured(objects_at(term, "matchExpressions"), was.expressions, demand.expressions)
    return with_fields(term, {"matchExpressions": expressions})
