# SPDX-License-Identifier: Apache-2.0
"""Looks into pods, without any of the code that is tested."""

from collections.abc import Iterator
from typing import Any, Final

from policies.model.keys import QUOTA_GATE
from policies.model.request import JsonObject
from tests.support.builders import Json, policy_set

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
SECTIONS: Final = ("initContainers", "containers", "ephemeralContainers")
_GPU_WORDS: Final = ("nvidia", "amd.com/gpu")


def containers_of(found: Any) -> Iterator[Json]:
    """Yield the containers of every kind."""
    for section in SECTIONS:
        yield from found["spec"].get(section) or []


def gpus_of(container: JsonObject) -> Json:
    """Return a container's GPU-like resources, by map."""
    resources: Any = container.get("resources") or {}
    found = {
        key: {
            name: amount
            for name, amount in (resources.get(key) or {}).items()
            if name.lower().startswith(_GPU_WORDS)
        }
        for key in ("limits", "requests")
    }
    return {key: amounts for key, amounts in found.items() if amounts}


def terms_of(found: Any) -> list[Json]:
    """Return the required node selector terms."""
    affinity = found["spec"].get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get(REQUIRED) or {}
    terms: list[Json] = required.get("nodeSelectorTerms") or []
    return terms


def gpu_fields(found: Any) -> Json:
    """Return all that a rewrite touches, less what is empty: that means what absence does."""
    spec = found["spec"]
    affinity = spec.get("affinity") or {}
    found_fields: Json = _without_empties(
        {
            "gpus": {c["name"]: gpus_of(c) for c in containers_of(found)},
            "tolerations": spec.get("tolerations"),
            "nodeSelector": spec.get("nodeSelector"),
            "terms": [term or {"matches": "no node"} for term in terms_of(found)],
            "affinity": {k: v for k, v in affinity.items() if k != "nodeAffinity"},
            "gates": [g for g in spec.get("schedulingGates") or [] if g["name"] != QUOTA_GATE],
        }
    )
    return found_fields


def _without_empties(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_empties(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [_without_empties(item) for item in value]
    return value


def has_partial_terms(found: Any) -> bool:
    """Tell whether some but not all terms hold an expression that a profile demands."""
    demanded = [
        e.to_json() for p in policy_set().profiles.values() for e in p.placement.expressions
    ]
    terms = [term.get("matchExpressions") or [] for term in terms_of(found) if term]
    return any(
        any(e in term for term in terms) and not all(e in term for term in terms) for e in demanded
    )
