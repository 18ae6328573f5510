# SPDX-License-Identifier: Apache-2.0
"""Leaders release pods in simulated time while everything that may go wrong does.

Watches lag and are cut, answers are lost, leaders are frozen and killed, pods change, go and come
back under their name, and writes are refused. No release takes a tenant past its ceiling; once
all is well again, whatever could go has gone, and nothing is outstanding.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.model.keys import GANG_LABEL, GANG_SIZE, QUOTA_GATE
from policies.model.policyset import PolicySet
from policies.quota.charge import read_charge
from reconciler.kube.elector import Elector, ElectorSettings
from reconciler.kube.errors import ApiError, error_from_status
from reconciler.kube.reflector import Runtime
from reconciler.leading import Leading, lead
from reconciler.quota.run import run_quota
from reconciler.runtime.controller_metrics import ControllerMetrics
from reconciler.runtime.documents import DocumentState
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.surroundings import Surroundings
from tests.support.builders import GPU, catalog
from tests.support.lease_server import LeaseServer, Network, RemoteClient
from tests.support.planning import base, tenant
from tests.support.simulated import SimulatedProcess, World
from tests.support.simulated_api import Place, SimulatedApi, SimulatedClient, pod_place

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
TENANTS = ("a", "b")
NODE_GPUS = 8
NODES = 4
SECONDS = 120
REFUSALS = {
    "forbidden": {"code": 403, "reason": "Forbidden", "message": "denied the request"},
    "invalid": {"code": 422, "reason": "Invalid", "message": "is invalid"},
    "broken": {
        "code": 500,
        "reason": "InternalError",
        "message": 'Internal error occurred: failed calling webhook "x": no endpoints',
    },
    "unwell": {"code": 500, "reason": "InternalError", "message": "etcdserver: timed out"},
    "denied with 409": {"code": 409, "reason": "", "message": "denied the request"},
    "busy": {"code": 429, "reason": "TooManyRequests", "message": "try again later"},
}


@dataclass
class Act:
    """What is done to the cluster, or befalls it, at some second; `number` chooses whom."""

    second: float
    kind: str
    seconds: float
    number: int


KINDS = (
    ["create"] * 12
    + ["end"] * 12
    + ["delete", "annotate", "bind"] * 4
    + ["gang", "gang", "delete gang", "delete gang"]
    + ["recreate", "recreate", "open", "open"]
    + ["freeze", "kill", "stop", "cut off", "slow", "lossy", "lag"]
    + ["cut", "compact", "hang", "ceiling", "flaky", "flaky", "busy hands", *REFUSALS]
)
ACTS = st.builds(
    Act,
    second=st.floats(0, SECONDS),
    kind=st.sampled_from(KINDS),
    seconds=st.floats(0.5, 20),
    number=st.integers(0, 10**6),
)


class Documents:
    """The policies that all processes have."""

    def __init__(self) -> None:
        self._generations = count()
        self._now: PolicySet | None = None

    def set(self, ceilings: dict[str, int]) -> None:
        tenants = {
            name: tenant(name, ceiling if name == "a" else None, ceiling)
            for name, ceiling in ceilings.items()
        }
        self._now = replace(
            base(),
            generation=f"g{next(self._generations)}",
            tenants=tenants,
            tenant_by_namespace={n: t for t in tenants.values() for n in t.namespaces},
            selecting_tenants=(),
            pools={},
        )

    @property
    def state(self) -> DocumentState:
        return DocumentState(self._now)

    def current(self) -> PolicySet | None:
        return self._now

    def subscribe(self, subscriber: Callable[[DocumentState], None]) -> Callable[[], None]:
        return lambda: None


class Cluster:
    """Processes that stand for one Lease, the API server, and an observer of it."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.draw = random.Random(seed)  # noqa: S311 - replayable
        self.network = Network(self.draw, (0.001, self.draw.choice([0.02, 0.02, 0.3])))
        self.leases = LeaseServer()
        self.api = SimulatedApi(world, self.network)
        self.api.patched = self.check
        self.api.admit = self.admit
        self.api.hangs = lambda pod: pod["metadata"]["uid"] in self.hanging
        self.documents = Documents()
        self.ceilings = {"a": 6, "b": 6}
        self.history: list[tuple[float, dict[str, int]]] = []
        self.set_ceilings({})
        self.refused: dict[str, str] = {}
        self.hanging: set[str] = set()
        self.flaky = self.touched = 0.0
        """Which share of writes is refused at random, and after which others change the pod too."""
        self.tasks: dict[SimulatedProcess, asyncio.Task[None]] = {}
        self.leads: list[tuple[SimulatedProcess, Leading]] = []
        self.releases = 0
        self._names = count()
        self._pods = count()
        for name in TENANTS:
            self.api.put("namespaces", {"metadata": {"name": name}})
        for number in range(NODES):
            self.api.put("nodes", node(f"n{number}"))

    # What the cluster does.

    def start(self) -> None:
        process = self.world.process(f"process-{next(self._names)}")
        runtime = Runtime(
            lambda: self.world.now,
            self.draw.uniform,
            wall_clock=lambda: EPOCH + timedelta(seconds=self.world.now),
        )
        client: Any = SimulatedClient(process, self.api)
        nothing: Any = None
        metrics = Metrics()
        around = Surroundings(nothing, client, self.documents, catalog(), metrics, nothing, runtime)

        async def quota(leading: Leading) -> None:
            self.leads.append((process, leading))
            await run_quota(leading)

        async def campaign() -> None:
            while True:
                settings_ = ElectorSettings("sluice", "leader", process.name)
                lease_client = RemoteClient(self.world, process, self.leases, self.network)
                elector = Elector(lease_client, settings_, runtime)
                await elector.run(partial(lead, around, (("quota", quota),), counted))

        counted = ControllerMetrics(metrics)
        self.tasks[process] = self.world.start(process, campaign())

    def create(self, name: str = "", number: int = 0) -> None:
        namespace = TENANTS[number % len(TENANTS)]
        gpus = 1 + number // 2 % 3
        made = pod(namespace, name or f"p{next(self._pods)}", gpus, self.world.now)
        if number // 6 % 8 == 0:
            made["spec"]["schedulingGates"].append({"name": "example.com/other"})
        if number // 48 % 4 == 0:
            # A pin to the hosts of no other pool makes the leader read it before it writes.
            made["spec"]["nodeSelector"] = {"kubernetes.io/os": "linux"}
        self.api.put("pods", made)

    def create_gang(self, size: int, number: int) -> None:
        namespace, gang = TENANTS[number % len(TENANTS)], f"gang-{next(self._pods)}"
        for _ in range(size):
            made = pod(namespace, f"p{next(self._pods)}", 1, self.world.now)
            made["metadata"]["labels"] = {GANG_LABEL: gang}
            made["metadata"]["annotations"] = {GANG_SIZE: str(size)}
            self.api.put("pods", made)

    def do(self, act: Act) -> None:
        if act.kind == "create":
            for extra in range(1 + act.number % 4):
                self.create(number=act.number // 4 + extra)
        elif act.kind == "gang":
            self.create_gang(1 + act.number % 3, act.number // 3)
        elif act.kind == "ceiling":
            name = TENANTS[act.number % len(TENANTS)]
            self.set_ceilings({name: 2 + act.number // 2 % 8})
        elif act.kind in TO_PODS:
            pods = [item for item in self.api.all("pods") if TO_PODS[act.kind](item)]
            pods.sort(key=lambda item: str(item["metadata"]["name"]))
            if pods:
                chosen = pods[act.number % len(pods)]
                self.do_to_pod(act, chosen, place_of(chosen))
        else:
            self.befall(act)

    def do_to_pod(self, act: Act, item: Any, place: Place) -> None:
        match act.kind:
            case "annotate":
                self.touch(place)
            case "end":
                self.api.change(place, lambda p: p.update(status={"phase": "Succeeded"}))
            case "bind":
                self.bind(item, place)
            case "open":
                self.api.change(place, _without_other_gates)
            case "delete":
                self.delete(item, place, act.seconds)
            case "delete gang":
                for each in self.api.all("pods"):
                    if gang_of(each) == gang_of(item):
                        self.delete(each, place_of(each), act.seconds)
            case "recreate":
                self.api.remove(place)
                self.create(place[2], act.number)
            case _:
                self.refuse(act, item["metadata"]["uid"])

    def delete(self, item: Any, place: Place, grace: float) -> None:
        if is_gated(item) or "nodeName" not in item["spec"]:
            self.api.remove(place)
            return
        at = iso(self.world.now + grace)
        self.api.change(place, lambda p: p["metadata"].update(deletionTimestamp=at))
        uid = item["metadata"]["uid"]

        def end() -> None:
            found = self.api.objects.get(place)
            if found is not None and found["metadata"]["uid"] == uid:
                self.api.remove(place)

        self.world.at(self.world.now + grace, end)

    def bind(self, item: Any, place: Place) -> None:
        for number in range(NODES):
            name = f"n{number}"
            taken = sum(
                gpus_of(p)
                for p in self.api.all("pods")
                if p["spec"].get("nodeName") == name and counts(p)
            )
            if taken + gpus_of(item) <= NODE_GPUS:
                self.api.change(place, lambda p, name=name: p["spec"].update(nodeName=name))  # type: ignore[misc]
                return

    # What befalls it.

    def refuse(self, act: Act, uid: str) -> None:
        if act.kind == "hang":
            self.hanging.add(uid)
            self.later(act, lambda: self.hanging.discard(uid))
        else:
            self.refused[uid] = act.kind
            self.later(act, lambda: self.refused.pop(uid, None))

    def admit(self, item: Any) -> ApiError | None:
        kind = self.refused.get(item["metadata"]["uid"])
        if self.draw.random() < self.flaky:
            kind = kind or self.draw.choice(sorted(REFUSALS))
        if self.draw.random() < self.touched:
            self.world.at(self.world.now, lambda: self.touch(place_of(item)))
        return None if kind is None else error_from_status(REFUSALS[kind], is_write=True)

    def touch(self, place: Place) -> None:
        stamp = {"seen": str(self.world.now)}
        self.api.change(
            place,
            lambda p: p["metadata"].update(
                annotations={**p["metadata"].get("annotations", {}), **stamp}
            ),
        )

    def set_ceilings(self, changed: dict[str, int]) -> None:
        self.ceilings = {**self.ceilings, **changed}
        self.history.append((self.world.now, self.ceilings))
        self.documents.set(self.ceilings)

    def befall(self, act: Act) -> None:
        if act.kind in ("freeze", "kill", "stop", "cut off"):
            self.befall_process(act)
        elif act.kind in ("cut", "compact"):
            if act.kind == "compact":
                self.api.compact()
            self.api.cut()
        else:
            owner, name, value, usual = {
                "slow": (self.network, "slow", 0.2, 0.0),
                "lossy": (self.network, "failing", 0.4, 0.0),
                "lag": (self.api, "watch_lag", (0.0, act.seconds / 4), (0.0, 0.05)),
                "flaky": (self, "flaky", 0.3, 0.0),
                "busy hands": (self, "touched", 0.5, 0.0),
            }[act.kind]
            self.network.slow_seconds = act.seconds
            setattr(owner, name, value)
            self.later(act, lambda: setattr(owner, name, usual))

    def befall_process(self, act: Act) -> None:
        running = [process for process, task in self.tasks.items() if not task.done()]
        leading = [p for p, each in self.leads if each.leadership.is_held() and p in running]
        # The leader above all: what befalls a candidate matters little.
        process = (leading * 3 + running)[act.number % (3 * len(leading) + len(running))]
        if act.kind == "freeze":
            process.frozen_until = max(process.frozen_until, self.world.now + act.seconds)
        elif act.kind == "kill":
            self.world.kill(process)
            del self.tasks[process]
            self.start()
        elif act.kind == "stop":
            process.call_soon(self.tasks[process].cancel)
            self.start()
        else:
            self.network.down.add(process.name)
            self.later(act, lambda: self.network.down.discard(process.name))

    def later(self, act: Act, do: Callable[[], object]) -> None:
        self.world.at(self.world.now + act.seconds, cast("Callable[[], None]", do))

    # What must hold.

    def used(self, name: str) -> int:
        return sum(gpus_of(p) for p in self.api.all("pods") if of(p) == name and counts(p))

    def check(self, _who: str, old: Any, new: Any) -> None:
        if not is_gated(old) or is_gated(new):
            return
        self.releases += 1
        charge = read_charge(new["metadata"]["annotations"].get("state.sluice.dev/charge"))
        assert charge is not None
        assert charge.amount.milli == 1000 * gpus_of(new)
        before = [c for at, c in self.history if at <= charge.at][-1]
        allowed = [before, *(c for at, c in self.history if at > charge.at)]
        name = of(new)
        assert self.used(name) <= max(ceilings[name] for ceilings in allowed), "past the ceiling"

    def check_rest(self) -> None:
        (leading,) = [
            each
            for process, each in self.leads
            if each.leadership.is_held() and process in self.tasks
        ]
        assert list(leading.outstanding.intents) == [], "something is outstanding"
        for name in TENANTS:
            milli = leading.cluster.state.ledger.used(name, "").milli
            assert milli == 1000 * self.used(name), "the ledger is not what the pods are"
            left = self.ceilings[name] - self.used(name)
            waiting = [p for p in self.api.all("pods") if of(p) == name and is_waiting(p)]
            stuck = [p["metadata"]["name"] for p in waiting if gpus_of(p) <= left]
            assert not stuck, "these could have gone"

    def failures(self) -> Iterator[BaseException]:
        for task in self.tasks.values():
            if task.done() and not task.cancelled():
                error = task.exception()
                if error is not None:
                    yield error


def node(name: str) -> Any:
    allocatable = {GPU: str(NODE_GPUS), "pods": "110", "cpu": "96"}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": allocatable}
    return {"metadata": {"name": name, "labels": labels}, "status": ready}


def pod(namespace: str, name: str, gpus: int, now: float) -> Any:
    amounts = {GPU: str(gpus)}
    return {
        "metadata": {"namespace": namespace, "name": name, "creationTimestamp": iso(now)},
        "spec": {
            "containers": [{"name": "main", "resources": {"limits": amounts, "requests": amounts}}],
            "schedulingGates": [{"name": QUOTA_GATE}],
        },
    }


def iso(now: float) -> str:
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def place_of(item: Any) -> Place:
    return pod_place(item["metadata"]["namespace"], item["metadata"]["name"])


def of(item: Any) -> str:
    return str(item["metadata"]["namespace"])


def gpus_of(item: Any) -> int:
    return int(item["spec"]["containers"][0]["resources"]["limits"][GPU])


def gates(item: Any) -> list[str]:
    return [gate["name"] for gate in item["spec"].get("schedulingGates", [])]


def is_gated(item: Any) -> bool:
    return QUOTA_GATE in gates(item)


def gang_of(item: Any) -> str:
    return str(item["metadata"].get("labels", {}).get(GANG_LABEL, ""))


def is_waiting(item: Any) -> bool:
    """Tell whether it waits for quota alone; of gangs some may be missing for ever."""
    if gang_of(item):
        return False
    return gates(item) == [QUOTA_GATE] and "deletionTimestamp" not in item["metadata"]


def counts(item: Any) -> bool:
    return not is_gated(item) and item.get("status", {}).get("phase") != "Succeeded"


def _without_other_gates(item: Any) -> None:
    kept = [gate for gate in item["spec"].get("schedulingGates", []) if gate["name"] == QUOTA_GATE]
    item["spec"]["schedulingGates"] = kept


TO_PODS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("annotate", "open", "delete", "recreate", "hang"), lambda _item: True),
    **dict.fromkeys(REFUSALS, lambda _item: True),
    "end": counts,
    "bind": lambda item: counts(item) and "nodeName" not in item["spec"],
    "delete gang": lambda item: bool(gang_of(item)),
}
"""What is done to a pod, and to which."""


@pytest.mark.timeout(600)
@settings(max_examples=settings().max_examples // 4)  # each is minutes of a cluster's life
@given(seed=st.integers(0, 2**32), acts=st.lists(ACTS, min_size=5, max_size=80))
def test_no_release_passes_a_ceiling_and_all_that_could_go_goes_in_the_end(
    seed: int, acts: list[Act]
) -> None:
    with World() as world:
        cluster = Cluster(world, seed)
        cluster.start()
        cluster.start()
        for act in acts:
            world.at(world.now + act.second, lambda act=act: cluster.do(act))  # type: ignore[misc]
        world.run(SECONDS + 20)
        world.run(150)
        assert list(cluster.failures()) == []
        cluster.check_rest()
