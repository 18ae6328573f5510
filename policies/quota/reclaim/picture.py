# SPDX-License-Identifier: Apache-2.0
"""Takes the picture that reclaim is planned from, out of the quota model's state.

Who waits for nothing but room is what the release planner has just said. Nothing is chosen here.
It is taken in two steps: what reads the state, at once; and what takes long and reads nothing but
that, which may go on beside whatever changes the state.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from policies.quota.amount import Amount
from policies.quota.borrowing import cohort_of
from policies.quota.ledger import NO_TENANT
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.planning.market import Market
from policies.quota.planning.values import Plan, Wait, Why
from policies.quota.pods import Phase, QuotaPod
from policies.quota.pools import pool_of
from policies.quota.reclaim.lines import Homeless, homeless_of, in_order, not_running
from policies.quota.reclaim.snapshot import (
    Disruption,
    Entitlement,
    EntitlementKey,
    Held,
    Kept,
    Snapshot,
)
from policies.quota.state import QuotaState

_LACKS_ROOM: Final = frozenset({Why.NO_ROOM, Why.RESERVED})


@dataclass(frozen=True, slots=True)
class Remembered:
    """What past passes have left behind; see `Snapshot`. `told` are UIDs of pods with a notice."""

    spent: Sequence[Disruption] = ()
    budget_used_up_until: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    going: frozenset[str] = frozenset()
    unneeded_since: Mapping[str, int] = field(default_factory=dict)
    told: Iterable[str] = ()


def lacks_room(waits: Iterable[Wait]) -> tuple[Wait, ...]:
    """Return those that nothing but room on nodes holds, as far as the release planner says."""
    return tuple(
        wait
        for wait in waits
        if wait.hold.why in _LACKS_ROOM and not wait.hold.is_of_quota and wait.tenant
    )


def still_waiting(state: QuotaState, waits: Iterable[Wait]) -> Iterator[Wait]:
    """Yield these without the pods that have been let go, or are gone, since they were planned."""
    intents = state.ledger.intents()
    for wait in waits:
        found = (_waiting(state, pod.uid, intents) for pod in wait.pods)
        pods = tuple(pod for pod in found if pod)
        if pods and (pods[0].gang is None or len(pods) == len(wait.pods)):
            yield replace(wait, pods=pods)


def _waiting(state: QuotaState, uid: str, intents: Container[str]) -> QuotaPod | None:
    pod = state.pod(uid)
    return pod if pod is not None and pod.is_waiting and uid not in intents else None


def _kept(state: QuotaState, planned: Plan) -> Mapping[str, Kept]:
    """Return what is kept for those that are owed it; what would borrow keeps nothing from them."""
    intents = state.ledger.intents()
    return {
        room.uid: Kept(room.node, room.fit, is_repaid=room.is_repaid)
        for room in planned.kept
        if room.owed and _waiting(state, room.uid, intents) is not None
    }


def take_picture(
    state: QuotaState,
    planned: Plan,
    pdbs: Sequence[PodDisruptionBudget],
    remembered: Remembered,
    now: int,
) -> Snapshot:
    """Return the picture as of `now` (Unix seconds), beside the newest plan of releases."""
    return expose(state, planned, pdbs, remembered, now).developed()


@dataclass(frozen=True, slots=True)
class Exposed:
    """A picture that nothing can change any more, without what is costly to make of it.

    `uncharged` is by UID the pool and the amount of pods that skipped the gate.
    """

    snapshot: Snapshot
    pods: Sequence[QuotaPod]
    owners: Mapping[str, str | None]
    uncharged: Mapping[str, tuple[str, Amount]]
    homeless: frozenset[str]

    def developed(self, known: Callable[[str], Held | None] = lambda _uid: None) -> Snapshot:
        """Return the picture with the pods that run. Reads nothing but what was exposed.

        Where `known` has by UID what would be made anew, that is used.
        """
        return replace(self.snapshot, live=self._live(known))

    def _live(self, known: Callable[[str], Held | None]) -> Mapping[EntitlementKey, list[Held]]:
        found: dict[EntitlementKey, list[Held]] = {}
        for pod in self.pods:
            if pod.phase is not Phase.LIVE or not pod.shape.gpus or pod.uid in self.homeless:
                continue
            owner, charge = self.owners[pod.namespace], pod.charge
            if charge is not None:
                key, amount = (owner or charge.tenant, charge.pool), charge.amount
            elif owner is not None:
                pool, amount = self.uncharged[pod.uid]
                key = (owner, pool)
            else:
                continue
            held = known(pod.uid)
            if held is None or held.pod is not pod or held.amount is not amount:
                held = Held(pod, amount)
            found.setdefault(key, []).append(held)
        return found


@dataclass(frozen=True, slots=True)
class _RoomsThen:
    """Rooms as they were: free by node, and where the pods stand that are bound to none."""

    by_node: Mapping[str, Mapping[str, int]]
    assumed: Mapping[str, str]

    def free(self, node_name: str) -> Mapping[str, int]:
        """Return what was free on a node."""
        return self.by_node.get(node_name, {})

    def node_of(self, uid: str) -> str | None:
        """Return the node of a pod that was released and not bound yet."""
        return self.assumed.get(uid)


def expose(
    state: QuotaState,
    planned: Plan,
    pdbs: Sequence[PodDisruptionBudget],
    remembered: Remembered,
    now: int,
) -> Exposed:
    """Take all that the picture as of `now` (Unix seconds) is made of."""
    market = Market(state, now)
    homeless = homeless_of(state)
    groups = tuple(in_order(state, still_waiting(state, lacks_room(planned.waits)), homeless))
    pools = frozenset(pool for group in groups for pool in group.pools)
    # Where nobody waits, only those with a notice matter: they may be spared.
    pods = list(state.pods() if groups else filter(None, map(state.pod, remembered.told)))
    snapshot = Snapshot(
        now=now,
        generation=state.policies.generation,
        settings=state.policies.settings,
        entitlements=dict(_entitlements(state, market, pools, homeless)),
        waiting=groups,
        live={},
        nodes=dict(state.nodes),
        rooms=_rooms(state, pods),
        pdbs=pdbs,
        spent=remembered.spent,
        budget_used_up_until=remembered.budget_used_up_until,
        refused=remembered.refused,
        going=remembered.going,
        unneeded_since=remembered.unneeded_since,
        excess_milli=_excess(market, pools, now),
        kept=_kept(state, planned),
        gang_sizes=state.queue.declared(),
    )
    owner = state.ledger.owner
    return Exposed(
        snapshot=snapshot,
        pods=pods,
        owners={namespace: owner(namespace) for namespace in {p.namespace for p in pods}},
        uncharged=_uncharged(state, pods),
        homeless=frozenset(state.fit.unplaced()),
    )


def _rooms(state: QuotaState, pods: Iterable[QuotaPod]) -> _RoomsThen:
    fit = state.fit
    assumed = {p.uid: n for p in pods if not p.node and (n := fit.node_of(p.uid)) is not None}
    return _RoomsThen({name: fit.free(name) for name in state.nodes}, assumed)


def _uncharged(state: QuotaState, pods: Iterable[QuotaPod]) -> Mapping[str, tuple[str, Amount]]:
    found: dict[str, tuple[str, Amount]] = {}
    for pod in pods:
        if pod.charge is None and pod.shape.gpus and pod.phase is Phase.LIVE:
            node = state.nodes.get(pod.node)
            pool = pool_of(state.policies, node.labels) if node is not None else ""
            found[pod.uid] = (pool, state.ledger.charged(pod.uid))
    return found


def _entitlements(
    state: QuotaState, market: Market, pools: frozenset[str], homeless: Homeless
) -> Iterator[tuple[EntitlementKey, Entitlement]]:
    policies, ledger = state.policies, state.ledger
    for name in sorted({*policies.tenants, *ledger.tenants()} - {NO_TENANT}):
        tenant = policies.tenants.get(name)
        for pool in {*state.options.pools, *ledger.pools(name)}:
            guarantee = (tenant.quota_of(pool).guarantee_milli or 0) if tenant is not None else 0
            used = ledger.entitled(name, pool)
            if not guarantee and used.is_nothing:
                continue
            yield (
                (name, pool),
                Entitlement(
                    tenant=name,
                    pool=pool,
                    guarantee_milli=guarantee,
                    used=used.minus(not_running(homeless, name, pool)),
                    cohort=cohort_of(tenant) if tenant is not None else None,
                    priority=tenant.priority if tenant is not None else 0,
                    min_runtime_seconds=tenant.min_runtime_seconds if tenant is not None else 0,
                    fair_milli=market.shares(pool).get(name) if pool in pools else None,
                    fixed=ledger.fixed(name, pool).minus(
                        not_running(homeless, name, pool, only_fixed=True)
                    ),
                    policy=policies.reclaim_policy_of(tenant.cohort if tenant else None),
                ),
            )


def _excess(market: Market, pools: Iterable[str], now: int) -> Mapping[tuple[str, str], int]:
    """Return by cohort and pool what is borrowed past what the cohort's own tenants may lend."""
    found: dict[tuple[str, str], int] = {}
    for pool in pools:
        for standing in market.standings(pool, now):
            key = (standing.cohort, pool)
            more = standing.borrowed_milli - standing.lendable_milli
            found[key] = found.get(key, 0) + more
    return {key: milli for key, milli in found.items() if milli > 0}
