# SPDX-License-Identifier: Apache-2.0
"""`sluice map`: who has which cards, as a value that the terminal, SVG and JSON are made from."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from policies.placement.figures import has_gpus, model_name
from policies.placement.mapping import NodeMap, map_node
from reconciler.cli.fleet import Fleet, SeenPod
from reconciler.cli.nodes import status_of
from reconciler.cli.palette import Look, looks

ASSUMED: Final = (
    "Which card a pod has is assumed: Kubernetes does not know. Shares are taken to be spread over "
    "cards, whole cards and MIG instances to be given in order, and instances to lie where the "
    "board has places for them."
)


@dataclass(frozen=True, slots=True)
class NodeCards:
    """A node and its cards; its status is as `kubectl get nodes` says it."""

    cards: NodeMap
    status: str

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.cards.name


@dataclass(frozen=True, slots=True)
class CardMap:
    """All nodes with GPUs by model. `pods` are those on them by UID, `milli` what tenants have."""

    models: Mapping[str, Sequence[NodeCards]]
    pods: Mapping[str, SeenPod]
    milli: Mapping[str, int]
    seen: frozenset[str] = frozenset()
    """The pods, by UID, that telemetry shows on their cards."""

    @property
    def assumed(self) -> str:
        """Return what is assumed, and of how many pods it is not."""
        if not self.seen:
            return ASSUMED
        return f"Telemetry shows {len(self.seen)} pods on their cards. Of others: {ASSUMED}"

    @property
    def looks(self) -> Mapping[str, Look]:
        """Return how each tenant is shown, in name order."""
        return looks(self.milli)

    def tenant(self, uid: str) -> str:
        """Return whom a pod belongs to; empty for nobody."""
        found = self.pods.get(uid)
        return found.tenant if found is not None else ""

    def name(self, uid: str) -> str:
        """Return a pod's namespace and name."""
        found = self.pods.get(uid)
        return f"{found.pod.namespace}/{found.pod.name}" if found is not None else uid


def card_map(fleet: Fleet) -> CardMap:
    """Return the map of a fleet: models, and nodes of each, in name order."""
    models: dict[str, list[NodeCards]] = {}
    milli: Counter[str] = Counter()
    sighted: set[str] = set()
    for name in fleet.model.nodes():
        here = fleet.model.occupancy(name)
        if here is None or not has_gpus(here.node, fleet.catalog):
            continue
        found = NodeCards(map_node(here, fleet.catalog), status_of(here.node))
        models.setdefault(model_name(here.node, fleet.catalog), []).append(found)
        sighted |= here.seen
        for uid, wish in here.pods.items():
            if wish.ask.devices:
                seen = fleet.pods.get(uid)
                milli[seen.tenant if seen is not None else ""] += here.cards_milli(wish.ask)
    ordered = {model: models[model] for model in sorted(models)}
    return CardMap(ordered, fleet.pods, milli, frozenset(sighted))


def print_map_json(found: CardMap, stream: TextIO) -> None:
    """Print one object: nodes with their cards, and of each card its parts in thousandths."""
    plain = {
        "assumed": found.assumed,
        "tenants": [
            {"tenant": tenant or None, "milli": found.milli[tenant]} for tenant in found.looks
        ],
        "nodes": [
            _plain(node, model, found) for model, nodes in found.models.items() for node in nodes
        ],
    }
    json.dump(plain, stream, indent=2)
    stream.write("\n")


def _plain(node: NodeCards, model: str, found: CardMap) -> dict[str, object]:
    return {
        "name": node.name,
        "model": model,
        "status": node.status,
        "cards": [
            {
                "mode": card.mode,
                "parts": [
                    {
                        "resource": part.resource,
                        "start": part.start,
                        "end": part.end,
                        "pod": found.name(part.uid) if part.uid else None,
                        "tenant": (found.tenant(part.uid) or None) if part.uid else None,
                        "isSeen": part.uid in found.seen,
                    }
                    for part in card.parts
                ],
            }
            for card in node.cards.cards
        ],
        "withoutCard": [found.name(uid) for uid in node.cards.excess],
    }
