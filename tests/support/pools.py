# SPDX-License-Identifier: Apache-2.0
"""Pools whose documents say how their nodes are ranked."""

from policies.model.policyset import PolicySet
from tests.support.builders import policy_set


def pool_document(name: str, placement: str = "", selector: str | None = None) -> str:
    """Return a document of the nodes of a selector, by default the label `pool` of that name."""
    nodes = f"{{matchLabels: {{pool: {name}}}}}" if selector is None else selector
    lines = [
        "apiVersion: sluice.dev/v1alpha1",
        "kind: GPUPool",
        f"metadata: {{name: {name}}}",
        "spec:",
        f"  nodes: {{selector: {nodes}}}",
        *([f"  placement: {placement}"] if placement else []),
    ]
    return "\n".join(lines) + "\n"


def pools(**placements: str) -> PolicySet:
    """Return the set of such documents; an empty text says nothing."""
    return policy_set("---\n".join(pool_document(*item) for item in placements.items()))
