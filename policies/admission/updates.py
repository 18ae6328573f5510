# SPDX-License-Identifier: Apache-2.0
"""A pod being changed: nobody but Sluice, in its leader's term, may touch what Sluice owns in it.

Nothing is decided anew, for policies may have changed since, and a refused update of a finalizer
wedges a pod for ever. Resources and environment are immutable by the API server's own rules.
"""

from collections.abc import Iterator, Mapping

from policies.admission.terms import past_terms
from policies.checks import device_annotations
from policies.model.decision import Decision, Verdict, Violation
from policies.model.facts import Facts
from policies.model.keys import BREAK_GLASS_GROUP, DECISION, QUOTA_GATE, STATE_PREFIX
from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from policies.model.request import JsonObject, Phase, Request
from policies.pod.reading import object_at, objects_at, string_at, strings_at
from policies.rewrite.claim import read_claim


def decide_update(policies: PolicySet, facts: Facts, request: Request, raw: JsonObject) -> Decision:
    """Decide on a pod update; the first pass never changes one. Raises MalformedError."""
    old = request.old_object or {}
    violations: tuple[Violation, ...] = ()
    if request.phase is Phase.VALIDATE and not _breaks_glass(request, old, raw):
        own = request.user.username == policies.settings.account
        violations = tuple(_stale_releases(facts, old, raw) if own else _trespasses(old, raw))
    return Decision(
        verdict=Verdict.DENIED if violations else Verdict.ALLOWED,
        generation=policies.generation,
        violations=violations,
        touches_gpus=bool(violations)
        or DECISION in strings_at(object_at(old, "metadata"), "annotations"),
        stale_seconds=facts.stale_seconds,
    )


def _breaks_glass(request: Request, old: JsonObject, new: JsonObject) -> bool:
    """Tell whether a gate is taken off by force, which the API server does not even ask about."""
    return BREAK_GLASS_GROUP in request.user.groups and _ungates(old, new)


def _stale_releases(facts: Facts, old: JsonObject, new: JsonObject) -> Iterator[Violation]:
    if _ungates(old, new):
        yield from past_terms(facts, new)


def _trespasses(old: JsonObject, new: JsonObject) -> Iterator[Violation]:
    for section in ("annotations", "labels"):
        before = strings_at(object_at(old, "metadata"), section)
        after = strings_at(object_at(new, "metadata"), section)
        for key in sorted(_owned(before).keys() | _owned(after).keys()):
            if before.get(key) != after.get(key):
                yield _owned_key(f"{section[:-1]} {key[:128]}")
        if section == "annotations":
            # A pod waits behind its gate, and its runtime reads annotations when it starts.
            written = (key for key, value in after.items() if before.get(key) != value)
            yield from device_annotations.violations(written)
    if _ungates(old, new):
        yield _owned_key(f"scheduling gate {QUOTA_GATE}")
    yield from _placement(old, new)


def _ungates(old: JsonObject, new: JsonObject) -> bool:
    return _gated(object_at(old, "spec")) and not _gated(object_at(new, "spec"))


def _placement(old: JsonObject, new: JsonObject) -> Iterator[Violation]:
    """Demand that what the first pass added is still there; additions by others may stand."""
    claim = read_claim(strings_at(object_at(old, "metadata"), "annotations").get(DECISION))
    if claim is None:
        return
    before, spec = object_at(old, "spec"), object_at(new, "spec")
    had, has = strings_at(before, "nodeSelector"), strings_at(spec, "nodeSelector")
    for key, value in claim.node_selector.items():
        if had.get(key) == value and has.get(key) != value:
            yield _owned_key(f"node selector {key}")
    tolerations = objects_at(spec, "tolerations")
    for toleration in claim.tolerations:
        if toleration in objects_at(before, "tolerations") and toleration not in tolerations:
            yield _owned_key(f"toleration of {toleration.get('key')}")


def _owned(found: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in found.items() if key.startswith(STATE_PREFIX)}


def _gated(spec: JsonObject) -> bool:
    return any(string_at(g, "name") == QUOTA_GATE for g in objects_at(spec, "schedulingGates"))


def _owned_key(what: str) -> Violation:
    return Violation(Reason.OWNED_KEY, f"{what} belongs to Sluice, which alone may change it")
