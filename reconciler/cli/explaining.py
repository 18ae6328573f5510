# SPDX-License-Identifier: Apache-2.0
"""What there is to say of one pod: decision, charge, its place, what holds it, what would end that.

Pure: a scene in, a report out. Wording that people see is in `explain`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from policies.admission.charging import amount as gpus_text
from policies.admission.charging import gpus
from policies.model.keys import DECISION, QUOTA_GATE
from policies.model.quantity import QuantityError, parse_quantity
from policies.placement.verdicts import Verdicts, judge_nodes
from policies.quota.charge import ChargeRecord
from policies.quota.notice import rfc3339
from policies.quota.planning.explaining import Explanation, explain
from policies.quota.planning.market import Market
from policies.quota.planning.plan import plan
from policies.quota.planning.values import Why
from policies.quota.planning.verdict import in_pool
from policies.quota.pods import Notice, Phase, QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.picture import take_picture
from policies.quota.state import QuotaState
from policies.rewrite.claim import Claim, read_claim
from reconciler.cli.snapshot import Scene
from reconciler.kube import raw
from reconciler.reclaim.plan import plan_reclaim

_MOST_HOLDERS: Final = 5
_LACKS_ROOM: Final = frozenset({Why.NO_ROOM, Why.RESERVED})


@dataclass(frozen=True, slots=True)
class Report:
    """A pod. `asked` and `given` are devices by resource name; without a claim nothing is known.

    `holders` are those who have what it lacks; `takes_back` what would be evicted for it, or why
    nothing is.
    """

    namespace: str
    name: str
    phase: str
    tenant: str
    claim: Claim | None
    asked: Mapping[str, int]
    given: Mapping[str, int]
    now: int
    created_at: int = 0
    explanation: Explanation | None = None
    charge: ChargeRecord | None = None
    notice: Notice | None = None
    other_gates: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    takes_back: tuple[str, ...] = ()
    no_reclaim: str = ""
    node: str = ""
    """The node that it is on."""
    verdicts: Verdicts | None = None
    """What becomes of all nodes, as they are now without it; None for one that goes nowhere."""


def report(scene: Scene) -> Report:
    """Return what there is to say."""
    metadata = raw.mapping(scene.raw, "metadata")
    claim = read_claim(raw.strings(metadata, "annotations").get(DECISION))
    gates = raw.mappings(raw.mapping(scene.raw, "spec"), "schedulingGates")
    pod = scene.pod
    explanation = explain(scene.state, pod, scene.now) if pod is not None else None
    namespace = raw.text(metadata, "namespace")
    owner = scene.state.ledger.owner(namespace)
    charge = pod.charge if pod is not None else None
    basic = Report(
        namespace=namespace,
        name=raw.text(metadata, "name"),
        phase=_phase(pod),
        tenant=owner or (charge.tenant if charge is not None else ""),
        claim=claim,
        asked=_asked(claim) if claim is not None else {},
        given=_given(claim) if claim is not None else dict(pod.shape.gpus) if pod else {},
        now=scene.now,
        created_at=pod.created_at if pod is not None else 0,
        explanation=explanation,
        charge=charge,
        notice=pod.notice if pod is not None else None,
        node=pod.node if pod is not None else "",
        other_gates=tuple(name for g in gates if (name := raw.text(g, "name")) != QUOTA_GATE),
    )
    if pod is None:
        return basic
    basic = replace(basic, verdicts=_verdicts(scene, pod, explanation))
    return basic if explanation is None else _of_waiting(scene, pod, basic)


def _of_waiting(scene: Scene, pod: QuotaPod, basic: Report) -> Report:
    explanation = basic.explanation
    if explanation is None:
        return basic
    why = explanation.hold.why
    nothing: tuple[tuple[str, ...], str] = ((), "room on nodes is not what it lacks")
    takes_back, no_reclaim = _reclaim(scene, pod) if why in _LACKS_ROOM else nothing
    return replace(
        basic,
        standing=tuple(_standing(scene.state, explanation)),
        holders=tuple(_holders(scene.state, explanation, scene.now)),
        takes_back=takes_back,
        no_reclaim=no_reclaim,
    )


def _verdicts(scene: Scene, pod: QuotaPod, explanation: Explanation | None) -> Verdicts | None:
    """Return what nodes say to a pod of GPUs: one that waits may go into any of its pools."""
    among = scene.among
    if among is None or not pod.shape.gpus:
        return None
    if pod.phase is Phase.ENDED or pod.deleted_at is not None:
        return None
    shapes = [pod.shape.fit]
    if explanation is not None and explanation.pools:
        options = scene.state.options.of(pod.shape)
        shapes = [option.fit for option in options if option.pool in explanation.pools]
    return judge_nodes(among.fleet.model, among.pod, shapes, among.settings.model.limits)


def _phase(pod: QuotaPod | None) -> str:
    if pod is None:
        return "Ended"
    if not pod.holds_quota:
        return "TakesNoGPU"
    return "Leaving" if pod.deleted_at is not None else str(pod.phase.value)


def _asked(claim: Claim) -> Mapping[str, int]:
    """Return what its containers ask for together, as their user wrote it."""
    found: Counter[str] = Counter()
    for original in claim.asked.values():
        for name, value in {**original.limits, **original.requests}.items():
            try:
                found[name] += int(parse_quantity(value))
            except QuantityError:
                continue
    return found


def _given(claim: Claim) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for amounts in claim.given.values():
        found.update(amounts)
    return found


def _standing(state: QuotaState, explanation: Explanation) -> Iterator[str]:
    """Yield what its tenant uses of its quota, in each pool that the pod may go into."""
    tenant = state.policies.tenants.get(explanation.tenant)
    if tenant is None:
        return
    for pool in explanation.pools:
        quota = tenant.quota_of(pool)
        used, fixed = (f(tenant.name, pool).milli for f in (state.ledger.used, state.ledger.fixed))
        parts = [f"guarantee {gpus(quota.guarantee_milli or 0)}"]
        if quota.ceiling_milli is not None:
            parts.append(f"ceiling {gpus(quota.ceiling_milli)}")
        if fixed:
            parts.append(f"{gpus(fixed)} never taken back")
        yield f"{tenant.name} uses {gpus_text(used)}{in_pool(pool)} ({', '.join(parts)})"


def _holders(state: QuotaState, explanation: Explanation, now: int) -> Iterator[str]:
    """Yield who has what it lacks: the largest first, and how many more there are."""
    why, pools = explanation.hold.why, tuple(explanation.pools)
    if why is Why.BORROWING:
        found = _borrowers(state, pools, now)
    elif why in (Why.CEILING, Why.FIXED):
        found = _own_pods(state, explanation.tenant, pools, only_fixed=why is Why.FIXED)
    else:
        return
    ordered = sorted(found, key=lambda holder: (-holder[1], holder[0]))
    for name, milli in ordered[:_MOST_HOLDERS]:
        yield f"{name} ({gpus_text(milli)})"
    if rest := ordered[_MOST_HOLDERS:]:
        yield f"{len(rest)} more ({gpus_text(sum(milli for _, milli in rest))})"


def _borrowers(state: QuotaState, pools: Iterable[str], now: int) -> Iterator[tuple[str, int]]:
    market = Market(state, now)
    for pool in pools:
        for standing in market.standings(pool, now):
            if standing.borrowed_milli:
                name = standing.tenant or "pods of no tenant"
                yield f"{name} borrows{in_pool(pool)}", standing.borrowed_milli


def _own_pods(
    state: QuotaState, tenant: str, pools: Iterable[str], *, only_fixed: bool
) -> Iterator[tuple[str, int]]:
    for uid, share in state.ledger.shares():
        if share.tenant != tenant or share.pool not in pools or (only_fixed and not share.fixed):
            continue
        pod = state.pod(uid)
        if pod is not None and share.amount.milli:
            yield f"{pod.namespace}/{pod.name}", share.amount.milli


def _reclaim(scene: Scene, pod: QuotaPod) -> tuple[tuple[str, ...], str]:
    """Return whom reclaim would evict for the pod, or else why nobody."""
    state, now = scene.state, scene.now
    told = [each.uid for each in state.pods() if each.notice is not None]
    budget = state.policies.settings.budget
    remembered = Memory().remembered(now, budget.per_seconds, told)
    snapshot = take_picture(state, plan(state, now), scene.pdbs, remembered, now)
    planned = plan_reclaim(snapshot)
    groups = [g for g in snapshot.waiting if any(m.pod.uid == pod.uid for m in g.members)]
    if not groups:
        return (), "it does not fit what is left of its tenant's guarantee"
    group = groups[0]
    victims = [uid for uid, of in (planned.victims or {}).items() if of == group.name]
    unmet = (planned.unmet or {}).get(group.name)
    reason = str(unmet) if unmet is not None else "room is being made for it already"
    return tuple(_victim(state, uid) for uid in victims), reason


def _victim(state: QuotaState, uid: str) -> str:
    pod = state.pod(uid)
    if pod is None:
        return uid
    owner = state.ledger.owner(pod.namespace) or (pod.charge.tenant if pod.charge else "")
    milli = state.ledger.charged(uid).milli
    when = f", at {rfc3339(pod.notice.evict_at)}" if pod.notice is not None else ""
    return f"{pod.namespace}/{pod.name} of {owner} ({gpus_text(milli)}{when})"
