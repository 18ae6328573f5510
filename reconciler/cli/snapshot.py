# SPDX-License-Identifier: Apache-2.0
"""Reads what quota is decided from into a state of its own, as the leader would see it now.

What a leader has under way just now, and keeps in memory, is not in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from policies.documents.problems import Severity
from policies.documents.source import SourceText
from policies.model.policyset import PolicySet
from policies.placement.model import Model
from policies.placement.pods import PlacedPod
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.pods import Phase, QuotaPod
from policies.quota.state import QuotaState
from reconciler.cli import inputs
from reconciler.cli.fleet import Fleet, Readers, SeenPod, assemble, measure
from reconciler.cli.loads import read_loads
from reconciler.cli.reading import Object, everything, viewed
from reconciler.cli.terminal import CommandError
from reconciler.kube.client import Client
from reconciler.kube.document_resources import API_KINDS, resource_of
from reconciler.kube.errors import NotFoundError
from reconciler.kube.facts import namespace_facts
from reconciler.kube.resources import (
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Selection,
    Target,
)
from reconciler.placement.settings import PlacementSettings
from reconciler.quota.pod_groups import RESOURCES as POD_GROUPS
from reconciler.quota.pod_groups import sized
from reconciler.quota.view import PodViews
from reconciler.reclaim.view import budget_view
from reconciler.runtime.api_documents import to_source
from reconciler.runtime.loading import Compiler
from reconciler.telemetry.config import TelemetryConfig
from reconciler.tenants.actuate import TENANTS
from reconciler.tenants.view import inherit

_MOST_PROBLEMS: Final = 5


@dataclass(frozen=True, slots=True)
class Placing:
    """How nodes are judged, and where what their cards do is read."""

    settings: PlacementSettings
    telemetry: TelemetryConfig


@dataclass(frozen=True, slots=True)
class Among:
    """The nodes and all other pods on them, with loads as far as they are known, and the pod.

    `complaints` say what of loads is missing, and why.
    """

    fleet: Fleet
    pod: PlacedPod
    settings: PlacementSettings
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """The state, and the pod that is asked about: raw, and as the quota model sees it.

    `now` is the cluster's time in Unix seconds; `pod` is None for one that has ended. `among` is
    what placement sees.
    """

    state: QuotaState
    raw: Object
    pod: QuotaPod | None
    pdbs: Sequence[PodDisruptionBudget]
    now: int
    among: Among | None = None


async def read_scene(
    client: Client,
    namespace: str,
    name: str,
    policies: Path | None,
    placing: Placing,
) -> Scene:
    """Read the cluster, and documents from a directory, else from the API.

    Raises ApiError, and CommandError where the pod or the documents are none.
    """
    try:
        found = await client.get(Target(PODS, name, namespace))
    except NotFoundError as error:
        raise CommandError(f"there is no pod {name} in namespace {namespace}") from error
    except ValueError as error:
        raise CommandError(str(error)) from error
    compiler = Compiler()
    state, readers = QuotaState(compiler.catalog), Readers(compiler.catalog)
    for item in await everything(client, Selection(NAMESPACES)):
        state.put_namespace(namespace_facts(item))
    nodes = await viewed(client, Selection(NODES), readers.node)
    for node in nodes:
        state.put_node(node.node)
    documents = await _policies(client, compiler, policies)
    state.set_policies(documents)
    pdbs = await _budgets(client, state)
    pods = await viewed(
        client, Selection(PODS), partial(_both, PodViews(compiler.catalog), readers)
    )
    for view, _ in pods:
        if view is not None:
            state.put_pod(view)
    if any(view is not None and view.gang and view.gang.is_pod_group for view, _ in pods):
        await _pod_groups(client, state)
    await _inherit(client, state)
    now = int(client.server_time() or 0)
    state.tick(now)
    placed = readers.pod(found).pod
    others = [seen for _, seen in pods if seen.pod.uid != placed.uid]
    fleet = assemble(compiler.catalog, nodes, others, placing.settings.model)
    fleet.model.set_policies(documents)
    pod = state.pod(placed.uid)
    if pod is not None and pod.phase is not Phase.LIVE:
        _assume(fleet.model, state, others, now)
    complaints = await _measured(fleet, placing.telemetry)
    among = Among(fleet, placed, placing.settings, complaints)
    return Scene(state, found, pod, pdbs, now, among)


def _both(views: PodViews, readers: Readers, item: Object) -> tuple[QuotaPod | None, SeenPod]:
    """Return a pod as quota and as placement see it, so that no raw pod has to be kept."""
    return views.view(item), readers.pod(item)


async def _budgets(client: Client, state: QuotaState) -> Sequence[PodDisruptionBudget]:
    budgets = await everything(client, Selection(POD_DISRUPTION_BUDGETS))
    pdbs = [budget_view(item) for item in budgets]
    for each in {pdb.namespace for pdb in pdbs}:
        state.set_pdbs(each, [pdb for pdb in pdbs if pdb.namespace == each])
    return pdbs


async def _pod_groups(client: Client, state: QuotaState) -> None:
    """Take the sizes of gangs that PodGroups state, where the cluster serves any version of them.

    Asked only where a pod is of one: not everybody may list them.
    """
    for resource in POD_GROUPS:
        try:
            items = await everything(client, Selection(resource))
        except NotFoundError:
            continue
        for key, size in map(sized, items):
            state.set_pod_group(key.namespace, key.name, size)
        return


def _assume(model: Model, state: QuotaState, pods: Iterable[SeenPod], now: int) -> None:
    """Count pods that are released and not bound yet where quota takes them to go.

    So a pod that waits is told what it will find. The extender knows whom it gave what instead.
    """
    for seen in pods:
        node = state.fit.node_of(seen.pod.uid)
        if node is not None and not seen.pod.node and not seen.pod.has_ended:
            model.assume(seen.pod, node, now)


async def _measured(fleet: Fleet, telemetry: TelemetryConfig) -> tuple[str, ...]:
    """Tell the model what cards do, as far as it is known; return what is missing."""
    loads = await read_loads(telemetry, fleet.nodes)
    measure(fleet, loads)
    return tuple(loads.complaints)


async def _policies(client: Client, compiler: Compiler, directory: Path | None) -> PolicySet:
    if directory is not None:
        try:
            return inputs.policies_from(compiler, directory)
        except inputs.BadInputError as error:
            raise CommandError(f"{directory} cannot be served: {error}") from error
    sources = await _documents(client)
    if not sources:
        raise CommandError("the cluster has no policy documents: name a directory with --policies")
    result = compiler.load(sources)
    if result.policy_set is None:
        errors = [str(p) for p in result.problems if p.severity is Severity.ERROR]
        shown = "; ".join(errors[:_MOST_PROBLEMS])
        raise CommandError(f"the cluster's policy documents cannot be served: {shown}")
    return result.policy_set


async def _documents(client: Client) -> list[SourceText]:
    """Return the documents of the API, those that mirror files among them."""
    found: list[SourceText] = []
    for kind in API_KINDS:
        try:
            items = await everything(client, Selection(resource_of(kind)))
        except NotFoundError:
            continue
        found += [to_source(kind, item) for item in items]
    return found


async def _inherit(client: Client, state: QuotaState) -> None:
    """Take over what the leader has observed of idle quota."""
    try:
        tenants: Sequence[Mapping[str, object]] = await everything(client, Selection(TENANTS))
    except NotFoundError:
        return
    for item in tenants:
        inherit(state, item)
