# SPDX-License-Identifier: Apache-2.0
"""How much of a claim is believed: only what Sluice itself could have done to a pod.

Whoever makes a pod may write its claim. Taken at its word, it would take out of the pod what other
webhooks have put there: the nodes that they pin a tenant to, their variables, their limits. What
is not believed counts as theirs, and stands.
"""

from collections.abc import Mapping
from dataclasses import replace

from policies.admission.companions import is_own_term
from policies.admission.limiting import VARIABLES
from policies.model.policyset import PolicySet
from policies.model.profile import Placement
from policies.rewrite.claim import Claim, Original
from policies.vendors import Catalog


def believed(claim: Claim, policies: PolicySet) -> Claim:
    """Return the claim without what no profile places, no limit sets and no GPU name is."""
    placements = _placements(claim, policies)
    return replace(
        claim,
        asked={name: _asked(original, policies.catalog) for name, original in claim.asked.items()},
        node_selector={
            key: value
            for key, value in claim.node_selector.items()
            if any(placement.node_selector.get(key) == value for placement in placements)
        },
        expressions=tuple(
            [e for e in claim.expressions if any(e in p.expressions_json for p in placements)]
        ),
        tolerations=tuple(
            [t for t in claim.tolerations if any(t in p.tolerations_json for p in placements)]
        ),
        anti_affinity=tuple([term for term in claim.anti_affinity if is_own_term(term)]),
        env={
            name: {key: value for key, value in variables.items() if key in VARIABLES}
            for name, variables in claim.env.items()
        },
    )


def _placements(claim: Claim, policies: PolicySet) -> list[Placement]:
    """Return those of all profiles; the ones that the claim names come first, and mostly do."""
    named = [policies.profiles.get(name) for name in claim.profiles.values()]
    return [p.placement for p in (*named, *policies.profiles.values()) if p is not None]


def _asked(original: Original, catalog: Catalog) -> Original:
    return Original(
        _gpus(original.limits, catalog),
        _gpus(original.requests, catalog),
        tuple([entry for entry in original.env if str(entry.get("name")) in VARIABLES]),
    )


def _gpus(amounts: Mapping[str, object], catalog: Catalog) -> Mapping[str, object]:
    return {name: value for name, value in amounts.items() if catalog.classify(name)}
