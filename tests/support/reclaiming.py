# SPDX-License-Identifier: Apache-2.0
"""Builds snapshots for reclaim: nodes with GPUs, tenants, pods that run and pods that wait."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from policies.cluster.constraints import Constraints
from policies.cluster.fit import FitIndex, FitShape
from policies.cluster.nodes import Node
from policies.model.reclaim import ReclaimPolicy
from policies.model.settings import Settings
from policies.quota.amount import Amount, total
from policies.quota.charge import ChargeRecord
from policies.quota.gangs import GangKey
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.pods import Gang, Notice, Phase, QuotaPod, Shape
from policies.quota.reclaim.snapshot import (
    Disruption,
    Entitlement,
    EntitlementKey,
    Group,
    Held,
    Member,
    Snapshot,
)

NOW = 1_936_785_600
GPU = "nvidia.com/gpu"
POLICY = ReclaimPolicy(name="main", notice_seconds=0)
"""Without notice, so that one plan shows what goes; notices have tests of their own."""


def whole(count: int) -> Amount:
    """So many whole GPUs."""
    return Amount({1: count}, 0, {GPU: count}) if count else Amount()


def shape(gpus: int = 1, selector: Mapping[str, str] | None = None, **more: Any) -> Shape:
    """A shape that asks whole GPUs, and two CPUs for each."""
    constraints = Constraints(node_selector=tuple(sorted((selector or {}).items())))
    requests = {GPU: gpus, "cpu": 2000 * gpus, "pods": 1}
    return Shape(fit=FitShape.of(requests, constraints), gpus={GPU: gpus}, **more)


def node(name: str, gpus: int = 8, labels: Mapping[str, str] | None = None) -> Node:
    """A node with GPUs."""
    room = {GPU: gpus, "cpu": 128_000, "pods": 110}
    return Node(name=name, labels=labels or {}, taints=(), allocatable=room)


@dataclass
class Scene:
    """A cluster to plan for; everything has the time NOW unless said otherwise."""

    nodes: list[Node] = field(default_factory=list)
    entitlements: dict[EntitlementKey, Entitlement] = field(default_factory=dict)
    pods: dict[EntitlementKey, list[Held]] = field(default_factory=dict)
    waiting: list[Group] = field(default_factory=list)
    pdbs: Sequence[PodDisruptionBudget] = ()
    settings: Settings = field(default_factory=Settings)
    spent: Sequence[Disruption] = ()
    budget_used_up_until: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    going: frozenset[str] = frozenset()
    unneeded_since: Mapping[str, int] = field(default_factory=dict)
    excess_milli: Mapping[tuple[str, str], int] = field(default_factory=dict)
    gang_sizes: Mapping[GangKey, int] = field(default_factory=dict)
    now: int = NOW

    def node(self, name: str, gpus: int = 8, **labels: str) -> "Scene":
        """Add a node."""
        self.nodes.append(node(name, gpus, labels))
        return self

    def tenant(self, name: str, gpus: int = 0, pool: str = "", **more: Any) -> "Scene":
        """Add a tenant that is guaranteed so many whole GPUs."""
        more = {"cohort": "main", "policy": POLICY, **more}
        self.entitlements[(name, pool)] = Entitlement(name, pool, 1000 * gpus, Amount(), **more)
        return self

    def running(self, tenant: str, name: str, on: str, gpus: int = 1, **more: Any) -> QuotaPod:
        """Add a released pod that runs on a node, since NOW - `age` seconds."""
        pool = more.pop("pool", "")
        charged = more.pop("charged", True)
        reclaimable = more.pop("reclaimable", True)
        at = self.now - more.pop("age", 3600)
        shape_ = more.pop("shape", None) or shape(gpus)
        amount = more.pop("amount", whole(gpus))
        record = ChargeRecord(tenant, pool, amount, "g1", at, reclaimable=reclaimable)
        pod = QuotaPod(
            namespace=more.pop("namespace", tenant),
            name=name,
            uid=f"uid-{name}",
            version="7",
            created_at=at,
            phase=Phase.LIVE,
            shape=shape_,
            node=on,
            charge=record if charged else None,
            **more,
        )
        self.pods.setdefault((tenant, pool), []).append(Held(pod, amount))
        return pod

    def wait(self, tenant: str, *names: str, gpus: int = 1, **more: Any) -> Group:
        """Add a waiting pod, or a gang of several."""
        pool = more.pop("pool", "")
        shape_ = more.pop("shape", None) or shape(gpus)
        group = {key: more.pop(key) for key in ("reclaimable",) if key in more}
        members = tuple(
            Member(
                QuotaPod(
                    namespace=tenant,
                    name=name,
                    uid=f"uid-{name}",
                    version="1",
                    created_at=self.now - 60,
                    phase=Phase.WAITING,
                    shape=shape_,
                    **more,
                ),
                pool,
                whole(gpus),
                shape_.fit,
            )
            for name in names
        )
        made = Group(f"{tenant}/{names[0]}", tenant, members, len(names) > 1, **group)
        self.waiting.append(made)
        return made

    def change(self, pod: QuotaPod, **fields: Any) -> QuotaPod:
        """Change a running pod."""
        changed = replace(pod, **fields)
        for key, held in self.pods.items():
            self.pods[key] = [Held(changed, h.amount) if h.pod.uid == pod.uid else h for h in held]
        return changed

    def snapshot(self) -> Snapshot:
        """Return the picture; entitlements have what their pods use."""
        return Snapshot(
            now=self.now,
            generation="g1",
            settings=self.settings,
            entitlements={
                key: replace(
                    entitlement,
                    used=_used(self.pods.get(key, ())),
                    fixed=_fixed(self.pods.get(key, ())),
                )
                for key, entitlement in self.entitlements.items()
            },
            waiting=tuple(self.waiting),
            live=dict(self.pods),
            nodes={node.name: node for node in self.nodes},
            rooms=self.rooms(),
            pdbs=self.pdbs,
            spent=self.spent,
            budget_used_up_until=self.budget_used_up_until,
            refused=self.refused,
            going=self.going,
            unneeded_since=self.unneeded_since,
            excess_milli=self.excess_milli,
            gang_sizes=self.gang_sizes,
        )

    def rooms(self) -> FitIndex:
        """Return what is free beside the running pods."""
        index = FitIndex()
        for each in self.nodes:
            index.put_node(each)
        for held in self.pods.values():
            for pod, _ in held:
                if pod.node:
                    index.bind(pod.uid, pod.node, dict(pod.shape.fit.requests))
                else:
                    index.place(pod.uid, pod.shape.fit)
        return index


def gang(name: str, size: int | None) -> Gang:
    """A gang."""
    return Gang(name, size)


def notice(evict_at: int, refused_at: int | None = None) -> Notice:
    """A notice that was given a while before."""
    return Notice("owner/w", "ReclaimPolicy/main", evict_at - 120, evict_at, refused_at)


def _used(held: Iterable[Held]) -> Amount:
    return total(h.amount for h in held if h.pod.deleted_at is None)


def _fixed(held: Iterable[Held]) -> Amount:
    return total(
        h.amount for h in held if h.pod.charge is not None and not h.pod.charge.reclaimable
    )
