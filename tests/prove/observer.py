# SPDX-License-Identifier: Apache-2.0
"""Counts breaches at every event of a watch of all pods.

Pure: raw objects and seconds come in, findings stay here. It shares no code with Sluice. Where the
events come from is `watching`; whether anything is lost or stuck is `ending` and `standstill`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction

from tests.prove.findings import Breach, Fact, Finding, Release
from tests.prove.seen import NOTICE, SeenPod, charged, see
from tests.prove.world import Json, Tenant, World, rounded


class Observer:
    """All pods of one cluster, as their events showed them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pods: dict[str, SeenPod] = {}
        """By uid: those that are there."""
        self.gone: dict[str, SeenPod] = {}
        """By uid: those that were, as last seen."""
        self.releases: dict[str, Release] = {}
        self.evictions: dict[str, SeenPod] = {}
        self.findings: list[Finding] = []
        self.used: dict[str, Fraction] = defaultdict(Fraction)
        """Thousandths by tenant."""
        self.taken: Counter[str] = Counter()
        """Devices by resource, over all tenants."""
        self._born: dict[str, float] = {}
        self._is_listed = False

    @property
    def breaches(self) -> list[Finding]:
        """What must not have been."""
        return [each for each in self.findings if isinstance(each.kind, Breach)]

    def facts(self, kind: Fact) -> list[Finding]:
        """Return what is told of one kind."""
        return [each for each in self.findings if each.kind is kind]

    def tenant(self, pod: SeenPod) -> Tenant | None:
        """Return whose a pod is."""
        return self.world.by_namespace.get(pod.namespace)

    def waiting(self) -> list[SeenPod]:
        """Return the tenants' pods that wait for Sluice alone."""
        return [p for p in self.pods.values() if p.is_waiting and p.cost and self.tenant(p)]

    def listed(self, items: Iterable[Json], version: int, now: float) -> None:
        """Take a whole list. After the first, what it lacks is gone and the rest has changed.

        What ended meanwhile is taken first, so a breach that is found is one for certain.
        """
        pods = [see(item, self.world) for item in items]
        if self._is_listed:
            self.findings.append(Finding(Fact.GAP, f"listed again at {version}", "", version))
        for uid in self.pods.keys() - {pod.uid for pod in pods}:
            self._remove(self.pods[uid])
        for pod in sorted(pods, key=lambda pod: (pod.counts, pod.version)):
            self._take(pod, now)
        self._is_listed = True

    def changed(self, kind: str, item: Json, now: float) -> None:
        """Take one event of the watch: ADDED, MODIFIED or DELETED."""
        pod = see(item, self.world)
        self._take(pod, now)
        if kind == "DELETED" and pod.uid in self.pods:
            self._remove(self.pods[pod.uid])

    def follow(self, world: World) -> None:
        """Count by other numbers from now on: a ceiling or a namespace has moved.

        Call it when a higher ceiling is written, and for a lower one when Sluice serves it.
        """
        self.world = world
        self.used.clear()
        for pod in self.pods.values():
            self._count(pod, 1, devices=False)
        for tenant in world.tenants:
            if self.used[tenant.name] > tenant.ceiling:
                self._find(Fact.OVER, f"{self._sum(tenant)} after a change of quotas")

    def differences(self, items: Iterable[Json]) -> list[str]:
        """Return how a list that is as new as the last event disagrees with what was counted."""
        listed = {pod.uid: pod for pod in (see(item, self.world) for item in items)}
        told = [f"{self.pods[uid].label} is gone" for uid in self.pods.keys() - listed.keys()]
        told += [f"{listed[uid].label} is new" for uid in listed.keys() - self.pods.keys()]
        told += [
            f"{pod.label} differs"
            for uid, pod in listed.items()
            if uid in self.pods and self.pods[uid] != pod
        ]
        return told + self._miscounted(listed)

    def _miscounted(self, listed: Mapping[str, SeenPod]) -> list[str]:
        anew: dict[str, Fraction] = defaultdict(Fraction)
        for pod in listed.values():
            if pod.counts and (tenant := self.tenant(pod)):
                anew[tenant.name] += pod.cost
        names = anew.keys() | self.used.keys()
        return [
            f"{name} uses {float(anew[name])}, counted were {float(self.used[name])}"
            for name in sorted(names)
            if anew[name] != self.used[name]
        ]

    def _take(self, pod: SeenPod, now: float) -> None:
        old = self.pods.get(pod.uid)
        if pod.uid in self.gone or (old is not None and pod.version <= old.version):
            return
        self.pods[pod.uid] = pod
        if old is not None:
            self._count(old, -1)
        self._count(pod, 1)
        if old is None:
            self._born[pod.uid] = now
            self._judge_birth(pod)
        elif old.is_gated and not pod.is_gated:
            self._judge_release(pod, now)
        elif old.counts and old.charge != pod.charge:
            self._find(Breach.TWICE, f"charged {pod.charge} after {old.charge}", pod)
        if pod.disruption and pod.is_deleting and not pod.is_gated:
            self._note_eviction(pod)

    def _remove(self, pod: SeenPod) -> None:
        self._count(pod, -1)
        self.gone[pod.uid] = self.pods.pop(pod.uid)
        if pod.disruption and not pod.is_gated:
            self._note_eviction(pod)

    def _count(self, pod: SeenPod, sign: int, *, devices: bool = True) -> None:
        tenant = self.tenant(pod)
        if pod.counts and tenant is not None:
            self.used[tenant.name] += sign * pod.cost
        if pod.counts and devices:
            for name, count in pod.devices.items():
                self.taken[name] += sign * count

    def _judge_birth(self, pod: SeenPod) -> None:
        tenant = self.tenant(pod)
        if self._is_listed and pod.counts and pod.cost and tenant is not None:
            self._find(Breach.BYPASS, f"made without the gate for {self._sum(tenant)}", pod)

    def _judge_release(self, pod: SeenPod, now: float) -> None:
        tenant = self.tenant(pod)
        if tenant is None or not pod.cost:
            return
        if pod.uid in self.releases:
            self._find(Breach.TWICE, "released a second time", pod)
        waited = now - self._born[pod.uid]
        release = Release(pod.uid, pod.label, tenant.name, pod.cost, pod.version, now, waited)
        self.releases[pod.uid] = release
        if pod.counts and self.used[tenant.name] > tenant.ceiling:
            self._find(Breach.CEILING, f"released, and now {self._sum(tenant)}", pod)
        self._judge_charge(pod, tenant)
        self._judge_order(pod, tenant)

    def _judge_charge(self, pod: SeenPod, tenant: Tenant) -> None:
        charge = charged(pod)
        if charge is None:
            self._find(Breach.UNCHARGED, f"released with the charge {pod.charge!r}", pod)
        elif charge[0] != tenant.name or charge[1] < rounded(pod.cost):
            text = f"charged {charge[1]} to {charge[0]}, takes {float(pod.cost)} of {tenant.name}"
            self._find(Breach.MISCHARGED, text, pod)

    def _judge_order(self, pod: SeenPod, tenant: Tenant) -> None:
        older = sum(
            1
            for each in self.pods.values()
            if each.created < pod.created
            and each.is_waiting
            and each.namespace in tenant.namespaces
            and (each.priority, each.devices, each.gang) == (pod.priority, pod.devices, pod.gang)
        )
        if older:
            self._find(Fact.OVERTAKEN, f"released before {older} older pods alike", pod)

    def _note_eviction(self, pod: SeenPod) -> None:
        if pod.uid in self.evictions:
            return
        self.evictions[pod.uid] = pod
        notice = pod.annotations.get(NOTICE, "without a notice")
        self._find(Fact.EVICTED, f"{pod.disruption}: {notice}", pod)

    def _sum(self, tenant: Tenant) -> str:
        used, ceiling = float(self.used[tenant.name]), float(tenant.ceiling)
        return f"{tenant.name} uses {used:g} of {ceiling:g} thousandths"

    def _find(self, kind: Breach | Fact, text: str, pod: SeenPod | None = None) -> None:
        if pod is None:
            self.findings.append(Finding(kind, text))
        else:
            finding = Finding(kind, f"{pod.label}: {text}", pod.uid, pod.version)
            self.findings.append(finding)
