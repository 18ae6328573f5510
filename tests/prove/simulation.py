# SPDX-License-Identifier: Apache-2.0
"""A cluster in simulated time: raw pods, a leader that plans, and the observer that watches both.

The API server, the scheduler and the kubelets are a few lines each; planner, ledger and views are
the real ones. What is decided on raw objects reaches planner and observer alike, so that neither
can hide a fault of the other. Nothing here waits or reads a clock.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import yaml

from policies.cluster.nodes import read_node
from policies.documents.facts import parse_facts
from policies.documents.source import SourceText
from policies.model.facts import Facts, NamespaceFacts
from policies.model.policyset import PolicySet
from policies.model.tenant import Quota
from policies.preview.expand import PreviewPod
from policies.preview.preview import preview
from policies.quota.planning.plan import plan
from policies.quota.planning.values import Plan, Release
from policies.quota.state import QuotaState
from policies.vendors import build_catalog
from reconciler.quota.view import PodViews
from reconciler.runtime.loading import Compiler
from tests.prove.observer import Observer
from tests.prove.scene import WHOLE, documents, gpu_pod
from tests.prove.seen import CHARGE, NOTICE, REASON
from tests.prove.world import Json, World

START: Final = 1_800_000_000
"""Unix seconds."""

_ONE_GPU: Final = {WHOLE: "1"}
_BY_API: Final = "EvictionByEvictionAPI"


@cache
def _compiler() -> Compiler:
    return Compiler()


class Simulation:
    """The cluster. Times are Unix seconds, which only `pass_time` moves."""

    def __init__(
        self,
        world: World,
        nodes: Iterable[Json],
        seed: int = 1,
        said: Iterable[Json] | None = None,
    ) -> None:
        """Begin with these nodes; `said` are documents that say the same as the world."""
        self.world = world
        self._said = list(documents(world) if said is None else said)
        self.now = START
        self.pods: dict[str, Json] = {}
        """Raw pods by uid, as the API server has them."""
        self._unplaced: dict[str, None] = {}
        """uids of released pods that no node has taken yet, in that order."""
        self.sent: dict[str, tuple[Release, str]] = {}
        """Releases by uid that may still land, with the version that each was made for."""
        self.observer = Observer(world)
        self.state = QuotaState(build_catalog())
        self._nodes = list(nodes)
        self._free = {n["metadata"]["name"]: dict(_offered(n, world)) for n in self._nodes}
        self._versions = 0
        self._random = random.Random(seed)  # noqa: S311 - a simulation must be repeatable
        self._policies = self._compile()
        self._forms: dict[tuple[str, str], Json] = {}
        self._facts = _facts(self._nodes, world)
        self.observer.listed([], 0, self.now)
        self.take_over()

    # What people and kubelets do

    def create(self, tenant: str, asks: Mapping[str, str] = _ONE_GPU, **parts: Any) -> str:
        """Create a pod as admission makes it; return its uid. `asks` are its limits.

        `labels` and `annotations` go into its metadata, other parts into its spec.
        """
        pod = deepcopy(self._form(tenant, asks))
        for key in ("labels", "annotations"):
            pod["metadata"].setdefault(key, {}).update(parts.pop(key, {}))
        pod["spec"] |= parts
        number = self._versions
        uid = f"uid-{number:06}"
        created = datetime.fromtimestamp(self.now, UTC).isoformat().replace("+00:00", "Z")
        pod["metadata"] |= {"uid": uid, "name": f"p{number:06}", "creationTimestamp": created}
        pod["status"] = {"phase": "Pending"}
        self._store(pod, "ADDED")
        return uid

    def finish(self, uid: str) -> None:
        """Have a pod come to its end."""
        pod = self.pods[uid]
        pod["status"]["phase"] = "Succeeded"
        self._store(pod, "MODIFIED")

    def delete(self, uid: str, grace_seconds: int) -> None:
        """Delete a pod; on a node it stays until `remove` or for ever."""
        pod = self.pods[uid]
        if not pod["spec"].get("nodeName") or not grace_seconds:
            self.remove(uid)
            return
        gone = datetime.fromtimestamp(self.now + grace_seconds, UTC)
        pod["metadata"]["deletionTimestamp"] = gone.isoformat().replace("+00:00", "Z")
        self._store(pod, "MODIFIED")

    def remove(self, uid: str) -> None:
        """Have a pod be gone."""
        self._store(self.pods[uid], "DELETED")

    def touch(self, uid: str) -> None:
        """Change a pod in a way that means nothing, which voids what was made for it before."""
        self._store(self.pods[uid], "MODIFIED")

    def evict(self, uid: str) -> None:
        """Have a pod end by the Eviction API, at once."""
        pod = self.pods[uid]
        condition = {"type": "DisruptionTarget", "status": "True", "reason": _BY_API}
        pod["status"]["conditions"] = [condition]
        self.remove(uid)

    def notify(self, uid: str, notice: str) -> None:
        """Write a notice on a pod."""
        self.pods[uid]["metadata"]["annotations"][NOTICE] = notice
        self._store(self.pods[uid], "MODIFIED")

    def schedule(self) -> None:
        """Place every released pod that some node has devices for, as a scheduler would."""
        for uid in tuple(self._unplaced):
            pod = self.pods.get(uid)
            if pod is None or self._place(pod):
                del self._unplaced[uid]

    def set_world(self, world: World) -> None:
        """Have other quotas from now on; the observer and the leader hear of it at once."""
        self.world = world
        self._policies = self._requoted()
        self.observer.follow(world)
        self.state.set_policies(self._policies)

    def pass_time(self, seconds: int) -> None:
        """Let time pass."""
        self.now += seconds

    # What the leader does

    def plan(self, limit: int = 500) -> Plan:
        """Plan as the leader would now."""
        return plan(self.state, self.now, limit)

    def send(self, releases: Iterable[Release]) -> None:
        """Have the leader declare releases and send them; each may `land` at any time."""
        for release in releases:
            self.state.charge_intent(release.pod.uid, release.charge, release.node)
            self.sent[release.pod.uid] = (release, release.pod.version)

    def land(self, uid: str) -> bool:
        """Have a release reach the API server, which takes it if the pod is still as it was."""
        release, version = self.sent.pop(uid)
        pod = self.pods.get(uid)
        is_taken = pod is not None and pod["metadata"]["resourceVersion"] == version
        if pod is not None and is_taken:
            pod["metadata"]["annotations"][CHARGE] = release.charge.to_annotation()
            pod["metadata"]["annotations"].pop(REASON, None)
            del pod["spec"]["schedulingGates"]
            selector = dict(release.pins.node_selector)
            pod["spec"]["nodeSelector"] = pod["spec"].get("nodeSelector", {}) | selector
            self._unplaced[uid] = None
            self._store(pod, "MODIFIED")
        self.state.settle(uid)
        return is_taken

    def say(self, planned: Plan) -> None:
        """Write on the pods why they wait."""
        for wait in planned.waits:
            for each in wait.pods:
                pod = self.pods[each.uid]
                if pod["metadata"]["annotations"].get(REASON) != wait.reason:
                    pod["metadata"]["annotations"][REASON] = wait.reason
                    self._store(pod, "MODIFIED")

    def take_over(self) -> None:
        """Have another leader begin: it lists in any order, and inherits what may still land."""
        state, views = QuotaState(build_catalog()), PodViews()
        self.state, self._views = state, views
        state.set_policies(self._policies)
        for namespace in self.world.by_namespace:
            state.put_namespace(NamespaceFacts(namespace, {}))
        for node in self._nodes:
            state.put_node(read_node(node))
        pods = list(self.pods.values())
        self._random.shuffle(pods)
        for pod in pods:
            self._tell(pod)
        for uid, (release, _) in self.sent.items():
            state.charge_intent(uid, release.charge)

    def used_milli(self, tenant: str) -> int:
        """Return what the leader's ledger says that a tenant uses."""
        return self.state.ledger.used(tenant, "").milli

    # How

    def _store(self, pod: Json, kind: str) -> None:
        self._versions += 1
        uid = pod["metadata"]["uid"]
        pod["metadata"]["resourceVersion"] = str(self._versions)
        if kind == "DELETED":
            self.pods.pop(uid, None)
            self.state.remove_pod(uid)
        else:
            self.pods[uid] = pod
            self._tell(pod)
        if kind == "DELETED" or pod["status"]["phase"] == "Succeeded":
            self._leave(pod)
        self.observer.changed(kind, pod, self.now)

    def _tell(self, pod: Json) -> None:
        view = self._views.view(deepcopy(pod))
        if view is None:
            self.state.remove_pod(pod["metadata"]["uid"])
        else:
            self.state.put_pod(view)

    def _place(self, pod: Json) -> bool:
        asked = self.world.devices_of(pod)
        for node, free in self._free.items():
            if all(free.get(name, 0) >= count for name, count in asked.items()):
                for name, count in asked.items():
                    free[name] -= count
                pod["spec"]["nodeName"] = node
                pod["status"]["phase"] = "Running"
                self._store(pod, "MODIFIED")
                return True
        return False

    def _leave(self, pod: Json) -> None:
        node = pod["spec"].get("nodeName")
        if node and not pod["status"].get("left"):
            pod["status"]["left"] = True  # its devices are given back once
            for name, count in self.world.devices_of(pod).items():
                self._free[node][name] += count

    def _form(self, tenant: str, asks: Mapping[str, str]) -> Json:
        key = (tenant, repr(sorted(asks.items())))
        if key not in self._forms:
            (namespace,) = self.world.by_name[tenant].namespaces
            manifest = gpu_pod(self.world.by_name[tenant], "form")
            manifest["spec"]["containers"][0]["resources"] = {"limits": dict(asks)}
            pod = PreviewPod("form", namespace, manifest)
            found = preview(self._policies, self._facts, pod)
            if found.after is None:
                raise ValueError(f"admission refuses the form: {found.decision}")
            self._forms[key] = deepcopy(dict(found.after))
        return self._forms[key]

    def _compile(self) -> PolicySet:
        text = yaml.safe_dump_all(self._said).encode()
        result = _compiler().load([SourceText("simulation.yaml", text)])
        if result.policy_set is None:
            raise ValueError(f"bad documents: {result.problems}")
        return result.policy_set

    def _requoted(self) -> PolicySet:
        tenants = {}
        for name, tenant in self._policies.tenants.items():
            own = self.world.by_name[name]
            quota = Quota(int(own.guarantee), int(own.ceiling))
            tenants[name] = replace(tenant, pools={"": quota})
        by_namespace = {n: t for t in tenants.values() for n in t.namespaces}
        return replace(self._policies, tenants=tenants, tenant_by_namespace=by_namespace)


def _offered(node: Json, world: World) -> Mapping[str, int]:
    allocatable = node["status"]["allocatable"]
    return Counter({name: int(allocatable.get(name, 0)) for name in world.costs})


def _facts(nodes: list[Json], world: World) -> Facts:
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in world.by_namespace
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": [*nodes, *namespaces]}
    source = SourceText("facts.yaml", yaml.safe_dump(listed).encode())
    now = datetime.fromtimestamp(START, UTC)
    facts, problems = parse_facts(source, catalog=build_catalog(), now=now)
    if facts is None:
        raise ValueError(f"bad facts: {problems}")
    return facts
