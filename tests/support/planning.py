# SPDX-License-Identifier: Apache-2.0
"""A small cluster for tests of planning: tenants, nodes and pods in a few words."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any, Final

from policies.cluster.constraints import Constraints
from policies.cluster.nodes import Node
from policies.cluster.shape import FitShape
from policies.model.facts import NamespaceFacts
from policies.model.keys import HOSTNAME_LABEL
from policies.model.labels import Expression, LabelSelector, Operator
from policies.model.policyset import PolicySet
from policies.model.pool import Pool
from policies.model.settings import QueueSettings
from policies.model.tenant import Lending, Quota, Tenant
from policies.pod.view import ContainerKind
from policies.quota.planning.plan import plan
from policies.quota.planning.values import Plan, Release, Why
from policies.quota.pods import Ask, Gang, Phase, QuotaPod, Shape
from policies.quota.state import QuotaState
from tests.support.builders import GPU, catalog, policy_set

START: Final = 1_000_000
"""The Unix time at which a world begins."""


@lru_cache(maxsize=1)
def base() -> PolicySet:
    """Return a compiled set, whose tenants and pools a test replaces."""
    return policy_set()


def tenant(
    name: str, guarantee: int | None = None, ceiling: int | None = None, **fields: Any
) -> Tenant:
    """Return a tenant with whole GPUs of quota, who owns the namespace of its name."""
    pools = fields.pop("pools", None)
    if pools is None:
        pools = {"": (guarantee, ceiling)}
    return Tenant(
        name=name,
        namespaces=frozenset({name}),
        selector=None,
        pools={pool: Quota(_milli(g), _milli(c)) for pool, (g, c) in pools.items()},
        **fields,
    )


def shape(gpus: int = 1, selector: Mapping[str, str] | None = None, **fields: Any) -> Shape:
    """Return the one shape of pods that ask so."""
    return _shape(gpus, tuple(sorted((selector or {}).items())), tuple(sorted(fields.items())))


@lru_cache(maxsize=256)
def _shape(
    gpus: int, selector: tuple[tuple[str, str], ...], fields: tuple[tuple[str, Any], ...]
) -> Shape:
    wanted = {GPU: gpus, "cpu": 100, "pods": 1}
    return Shape(
        fit=FitShape.of(wanted, Constraints(node_selector=selector)),
        asks=(Ask(ContainerKind.APP, {GPU: gpus}),) if gpus else (),
        gpus={GPU: gpus} if gpus else {},
        claimed=True,
        **dict(fields),
    )


def node(name: str, gpus: int = 8, **labels: str) -> Node:
    """Return a node of whole GPUs."""
    return Node(name, labels, (), {GPU: gpus, "cpu": 96_000, "pods": 110})


class World:
    """A state, and the pods that a test has made in it. Tenants own namespaces of their name."""

    def __init__(
        self, tenants: Iterable[Tenant], nodes: Iterable[Node] = (), **settings: Any
    ) -> None:
        self.state = QuotaState(catalog())
        self.pools: dict[str, Pool] = settings.pop("pools", {})
        self.settings = replace(base().settings, queue=QueueSettings(**settings))
        self.now = START
        self._numbers = count()
        self.set_tenants(tenants)
        for each in nodes:
            self.state.put_node(each)

    def set_tenants(self, tenants: Iterable[Tenant]) -> None:
        """Have these tenants from now on."""
        self.tenants = {each.name: each for each in sorted(tenants, key=lambda t: t.name)}
        for name in self.tenants:
            self.state.put_namespace(NamespaceFacts(name, {}))
        self.state.set_policies(
            replace(
                base(),
                generation=f"g{next(self._numbers)}",
                settings=self.settings,
                tenants=self.tenants,
                tenant_by_namespace={n: t for t in self.tenants.values() for n in t.namespaces},
                selecting_tenants=(),
                pools=self.pools,
            )
        )

    def idle(self, seconds: int = 1800) -> None:
        """Let time pass in which nothing happens but that it is watched."""
        for _ in range(0, seconds, 60):
            self.state.tick(self.now)
            self.now += 60
        self.state.tick(self.now)

    def wait(self, namespace: str, gpus: int = 1, many: int = 1, **fields: Any) -> list[QuotaPod]:
        """Make pods that wait; `gang` is a name and a size, `node_selector` and such go below."""
        gang = fields.pop("gang", None)
        pod_shape = fields.pop("shape", None) or shape(
            gpus, fields.pop("selector", None), **fields.pop("form", {})
        )
        prefix = fields.pop("name", "pod")
        made = []
        for _ in range(many):
            number = next(self._numbers)
            pod = QuotaPod(
                namespace=namespace,
                name=f"{prefix}-{number:05}",
                uid=f"uid-{number:05}",
                version="1",
                created_at=fields.get("created_at", self.now),
                phase=fields.get("phase", Phase.WAITING),
                shape=pod_shape,
                gang=None if gang is None else Gang(*gang),
                **{k: v for k, v in fields.items() if k not in ("created_at", "phase")},
            )
            self.state.put_pod(pod)
            made.append(pod)
        return made

    def plan(self, limit: int = 500) -> Plan:
        """Plan now, and do nothing. Each release may run where the plan has room for it."""
        planned = plan(self.state, self.now, limit)
        for release in planned.releases:
            found = self.state.nodes.get(release.node)
            assert found is None or _may_run(release, found), release
        return planned

    def act(self, limit: int = 500) -> Plan:
        """Plan, and carry the releases out: the pods are seen released, on no node yet."""
        planned = self.plan(limit)
        for release in planned.releases:
            self.state.charge_intent(release.pod.uid, release.charge, release.node)
        for release in planned.releases:
            pod = replace(release.pod, phase=Phase.LIVE, charge=release.charge, version="2")
            self.state.put_pod(pod)
            self.state.settle(pod.uid)
        return planned

    def run(self, namespace: str, gpus: int = 1, many: int = 1, **fields: Any) -> list[QuotaPod]:
        """Have pods released that nothing holds, and return them as they are then."""
        uids = [pod.uid for pod in self.wait(namespace, gpus, many, **fields)]
        planned = {release.pod.uid for release in self.act().releases}
        assert planned >= set(uids)
        return [self.pod(uid) for uid in uids]

    def bind(self, pod: QuotaPod, node_name: str) -> QuotaPod:
        """See a released pod on a node."""
        bound = replace(self.pod(pod.uid), node=node_name)
        self.state.put_pod(bound)
        return bound

    def end(self, *pods: QuotaPod) -> None:
        """See pods gone."""
        for pod in pods:
            self.state.remove_pod(pod.uid)

    def pod(self, uid: str) -> QuotaPod:
        """Return a pod as it is."""
        found = self.state.pod(uid)
        assert found is not None
        return found

    def used(self, name: str, pool: str = "") -> int:
        """Return what a tenant uses, in milli-GPU."""
        return self.state.ledger.used(name, pool).milli


def _may_run(release: Release, on: Node) -> bool:
    labels, pins = {HOSTNAME_LABEL: on.name, **on.labels}, release.pins
    return pins.node_selector.items() <= labels.items() and all(
        expression.matches(labels) for expression in pins.expressions
    )


def released(planned: Plan) -> list[str]:
    """Return the namespaces of what is released, in order."""
    return [release.pod.namespace for release in planned.releases]


def why(planned: Plan, pod: QuotaPod) -> Why | None:
    """Return why a pod waits, None if the plan does not say that it does."""
    found = [w.hold.why for w in planned.waits if pod.uid in {p.uid for p in w.pods}]
    assert len(found) <= 1
    return found[0] if found else None


def text(planned: Plan, pod: QuotaPod) -> str:
    """Return the reason that a pod waits for, in words."""
    return next(w.reason for w in planned.waits if pod.uid in {p.uid for p in w.pods})


def pool(name: str, **labels: str) -> Pool:
    """Return a pool of the nodes with these labels."""
    expressions = tuple(Expression(k, Operator.IN, (v,)) for k, v in labels.items())
    return Pool(name, LabelSelector(expressions))


def lending_at_once() -> Lending:
    """Return that what is idle is lent without delay."""
    return Lending(idle_after_seconds=0)


def _milli(gpus: int | None) -> int | None:
    return None if gpus is None else gpus * 1000
