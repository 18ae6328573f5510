# SPDX-License-Identifier: Apache-2.0
"""Nodes and the pods on them for commands, from the cluster or from a file, as one model.

The same model that the scheduler extender answers by; what it is asked is not known here.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from policies.cluster.nodes import Node, read_node
from policies.cluster.reading import mapping, mappings, text
from policies.model.keys import CHARGE, TENANT_LABEL
from policies.placement.figures import FiguresTable, NodeFigures, has_gpus
from policies.placement.gauging import gauge_of
from policies.placement.model import Model, ModelSettings
from policies.placement.pods import PlacedPod, PodReader
from policies.placement.sighting import sightings_of
from policies.quota.charge import read_charge
from policies.vendors import Catalog, build_catalog
from reconciler.cli.loads import Loads
from reconciler.cli.reading import Object, viewed
from reconciler.cli.terminal import CommandError
from reconciler.kube.client import Client
from reconciler.kube.resources import NODES, PODS, Selection
from reconciler.telemetry.nodes import TelemetryNode, node_view

_SETTINGS: Final = ModelSettings()
_STDIN: Final = "-"
_HOW: Final = "`kubectl get nodes,pods -A -o json`"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node as placement sees it, and as telemetry does."""

    node: Node
    telemetry: TelemetryNode


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod, its tenant (empty where nothing on it tells one), and since when it has run."""

    pod: PlacedPod
    tenant: str
    started: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """All of it. `pods` are those on nodes, by UID; `nodes` are what telemetry keeps of each."""

    catalog: Catalog
    model: Model
    table: FiguresTable
    pods: Mapping[str, SeenPod] = field(default_factory=dict)
    nodes: Mapping[str, TelemetryNode] = field(default_factory=dict)

    def figures(self) -> tuple[NodeFigures, ...]:
        """Return the figures of all nodes with GPUs, in name order."""
        names = self.model.nodes()
        self.table.keep(names)
        found = ((name, self.model.occupancy(name)) for name in names)
        return tuple(
            self.table.of(here, self.model.fragmented_milli(name))
            for name, here in found
            if here is not None and has_gpus(here.node, self.catalog)
        )


class Readers:
    """Makes views of raw objects; one for all of them, since they share parts."""

    def __init__(self, catalog: Catalog) -> None:
        self._pods = PodReader(catalog)
        self._node = node_view()

    def node(self, raw: Object) -> SeenNode:
        """Return the view of a raw Node."""
        return SeenNode(read_node(raw), self._node(raw))

    def pod(self, raw: Object) -> SeenPod:
        """Return the view of a raw Pod; its tenant is whom it is charged to."""
        metadata = mapping(raw, "metadata")
        charge = read_charge(text(mapping(metadata, "annotations"), CHARGE))
        tenant = charge.tenant if charge is not None else ""
        started = text(mapping(raw, "status"), "startTime")
        return SeenPod(
            self._pods.read(raw),
            tenant or text(mapping(metadata, "labels"), TENANT_LABEL),
            started or text(metadata, "creationTimestamp"),
        )


async def read_fleet(client: Client, selector: str, settings: ModelSettings) -> Fleet:
    """Read the nodes of a label selector and all pods. Raises ApiError."""
    catalog = build_catalog()
    readers = Readers(catalog)
    nodes = await viewed(client, Selection(NODES, label_selector=selector), readers.node)
    pods = await viewed(client, Selection(PODS), readers.pod)
    return assemble(catalog, nodes, pods, settings)


def file_fleet(path: Path, settings: ModelSettings) -> Fleet:
    """Read what `kubectl get nodes,pods -A -o json` has written; `-` is standard input.

    Raises CommandError for what is no such thing.
    """
    catalog = build_catalog()
    readers = Readers(catalog)
    items = list(_items(path))
    nodes = [readers.node(item) for item in items if text(item, "kind") == "Node"]
    pods = [readers.pod(item) for item in items if text(item, "kind") == "Pod"]
    if not nodes:
        raise CommandError(f"{path}: holds no Node: write it by {_HOW}")
    return assemble(catalog, nodes, pods, settings)


def assemble(
    catalog: Catalog,
    nodes: Iterable[SeenNode],
    pods: Iterable[SeenPod],
    settings: ModelSettings = _SETTINGS,
) -> Fleet:
    """Return the fleet of nodes and pods; those that started first chose their cards first."""
    model = Model(catalog, settings)
    seen_nodes, seen_pods = {}, {}
    for each in nodes:
        model.put_node(each.node)
        seen_nodes[each.node.name] = each.telemetry
    for pod in sorted(pods, key=lambda each: (each.started, each.pod.uid)):
        if pod.pod.node and pod.pod.uid and not pod.pod.has_ended:
            model.put_pod(pod.pod, is_in_order=False)
            seen_pods[pod.pod.uid] = pod
    for _ in model.learn():
        pass
    return Fleet(catalog, model, FiguresTable(catalog), seen_pods, seen_nodes)


def measure(fleet: Fleet, loads: Loads) -> None:
    """Tell the model what cards do, and which pods telemetry shows on which of them."""
    for name in fleet.model.nodes():
        measure_node(fleet.model, name, loads)


def measure_node(model: Model, name: str, loads: Loads) -> None:
    """Tell the model so of one node."""
    here, telemetry = model.occupancy(name), loads.view(name)
    if here is not None:
        model.put_gauge(name, gauge_of(here.node, telemetry, loads.config.weights))
        model.put_sightings(name, sightings_of(telemetry))


def _items(path: Path) -> Iterator[Object]:
    """Yield the objects of a file; lists are taken apart."""
    try:
        content = sys.stdin.buffer.read() if str(path) == _STDIN else path.read_bytes()
        found = orjson.loads(content)
    except OSError as error:
        raise CommandError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except orjson.JSONDecodeError as error:
        raise CommandError(f"{path}: is no JSON ({error}): write it by {_HOW}") from error
    if isinstance(found, dict):
        yield from mappings(found, "items") if "items" in found else (found,)
