# SPDX-License-Identifier: Apache-2.0
"""What the status of each tenant's object has to say, and which of them do not say it yet. Pure.

The status is also where idle histories outlive a leader, so it is written now and then even if
nothing else has changed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.admission.charging import amount as gpus_text
from policies.admission.charging import gpus
from policies.model.tenant import Tenant
from policies.quota.capacity import Overcommitment, overcommitted_pools
from policies.quota.figures import PoolFigures, TenantFigures
from policies.quota.idle import MOST_UNSEEN_SECONDS
from policies.quota.notice import rfc3339
from policies.quota.oddities import Odd, over_ceilings
from policies.quota.planning.verdict import in_pool
from policies.quota.state import QuotaState
from reconciler.kube import raw
from reconciler.tenants.view import ODD_PODS, OVER_QUOTA, OVERCOMMITTED, Object, Seen, histories

_MOST_TEXT: Final = 4096
_LOOK_SECONDS: Final = 10

_ODD: Final[Mapping[Odd, str]] = {
    Odd.SKIPPED_GATE: "with GPUs that were never charged",
    Odd.UNKNOWN_CHARGE: "whose cost nothing tells, counted as the most that it can be",
    Odd.NO_TENANT: "with GPUs in a namespace of no tenant",
    Odd.TENANT_GONE: "in a namespace that belongs to no tenant any more",
    Odd.NAMESPACE_MOVED: "charged to the tenant that had their namespace before",
    Odd.CHARGE_DIFFERS: "charged another amount than they cost",
    Odd.LOST_NODE: "deleted on a lost node, and not counted any more",
}


@dataclass(frozen=True, slots=True)
class Write:
    """A status to be written to the object of this name and uid."""

    name: str
    uid: str
    status: Object


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was looked at when a status was found to say what it is to say, and when."""

    item: Seen
    stands: TenantFigures
    promised: tuple[Overcommitment, ...]
    at: int


class StatusPlan:
    """Remembers which statuses say what they are to say, so that a look costs by what changed."""

    def __init__(self) -> None:
        self._looked: dict[str, _Looked] = {}

    def writes(
        self,
        state: QuotaState,
        standing: Mapping[str, TenantFigures],
        objects: Iterable[Seen],
        now: int,
    ) -> tuple[Write, ...]:
        """Return the statuses that differ from what they are to say; `now` is in Unix seconds."""
        promised = overcommitted_pools(state.policies, state.capacities())
        before, self._looked, found = self._looked, {}, []
        for item in objects:
            stands = standing.get(item.name) or TenantFigures(item.name, None)
            looked = before.get(item.uid)
            if looked is None or not _is_same(looked, item, stands, promised, now):
                write = _write(state, stands, promised, item, now)
                if write is not None:
                    found.append(write)
                    continue
                looked = _Looked(item, stands, promised, now)
            self._looked[item.uid] = looked
        return tuple(found)


def _is_same(
    looked: _Looked,
    item: Seen,
    stands: TenantFigures,
    promised: tuple[Overcommitment, ...],
    now: int,
) -> bool:
    """Tell whether a look would find the same; what stands idle changes with time alone."""
    return (
        looked.item is item
        and looked.stands is stands
        and looked.promised == promised
        and 0 <= now - looked.at < _LOOK_SECONDS
    )


def _write(
    state: QuotaState,
    stands: TenantFigures,
    promised: Iterable[Overcommitment],
    item: Seen,
    now: int,
) -> Write | None:
    status = {**_figures(stands), **_idle(state, stands.tenant)}
    conditions = tuple(_conditions(state, stands, promised))
    if _says(item, status, now) and all(_holds(item, told) for told in conditions):
        return None
    dated = [_dated(item, told, now) for told in conditions]
    return Write(item.name, item.uid, {**status, "conditions": dated})


def _figures(stands: TenantFigures) -> dict[str, object]:
    tenant, pools = stands.tenant, stands.pools
    status: dict[str, object] = {
        "guarantee": gpus(sum(pool.guarantee_milli for pool in pools)),
        "used": gpus(sum(pool.used_milli for pool in pools)),
        "borrowed": gpus(sum(pool.borrowed_milli for pool in pools)),
        "lent": gpus(sum(pool.lent_milli for pool in pools)),
        "owed": gpus(sum(pool.owed_milli for pool in pools)),
        "pending": stands.pending,
        "memory": _memory(stands),
        "resources": _resources(stands),
        "pools": [_pool(pool) for pool in pools],
    }
    if tenant is not None and stands.ceiling_milli is not None:
        status["ceiling"] = gpus(stands.ceiling_milli)
    if stands.oldest_at is not None:
        status["oldestWait"] = rfc3339(stands.oldest_at)
    return status


def _memory(stands: TenantFigures) -> Object:
    used = {"used": f"{stands.used.mib}Mi"}
    most = stands.tenant.memory_mib if stands.tenant is not None else None
    return used if most is None else {**used, "ceiling": f"{most}Mi"}


def _resources(stands: TenantFigures) -> Object:
    used = stands.used.counts
    most = stands.tenant.resources if stands.tenant is not None else {}
    return {
        name: {"used": used.get(name, 0), **({"ceiling": most[name]} if name in most else {})}
        for name in sorted({*used, *most})
    }


def _pool(pool: PoolFigures) -> Object:
    figures_of: dict[str, object] = {
        "name": pool.pool,
        "guarantee": gpus(pool.guarantee_milli),
        "used": gpus(pool.used_milli),
        "borrowed": gpus(pool.borrowed_milli),
        "lent": gpus(pool.lent_milli),
        "owed": gpus(pool.owed_milli),
        "pending": pool.pending,
    }
    if pool.ceiling_milli is not None:
        figures_of["ceiling"] = gpus(pool.ceiling_milli)
    return figures_of


def _idle(state: QuotaState, tenant: Tenant | None) -> Object:
    """Return the histories of what may be lent, as far as anything has been observed."""
    if tenant is None or not tenant.lending.enabled:
        return {}
    plain = [
        {"pool": pool, **state.history(tenant, pool).to_plain()}
        for pool, quota in sorted(tenant.pools.items())
        if quota.guarantee_milli
    ]
    observed = [entry for entry in plain if entry["at"] is not None]
    return {"idle": observed} if observed else {}


def _says(item: Seen, status: Object, now: int) -> bool:
    """Tell whether a status says so; time that has passed in idleness alone may wait a while."""
    old, new = dict(item.status), dict(status)
    before, after = histories(old), histories(new)
    old.pop("idle", None)
    new.pop("idle", None)
    return (
        old == new
        and before.keys() == after.keys()
        and all(_is_current(before[pool], after[pool], now) for pool in after)
    )


def _is_current(old: Object, new: Object, now: int) -> bool:
    at = old.get("at")
    is_recent = type(at) is int and now - at < MOST_UNSEEN_SECONDS
    timeless = ("pool", "idleAfterSeconds", "last", "peaks")
    return is_recent and all(old.get(key) == new.get(key) for key in timeless)


def _conditions(
    state: QuotaState, stands: TenantFigures, promised: Iterable[Overcommitment]
) -> Iterator[Object]:
    tenant = stands.tenant
    over = []
    if tenant is not None:
        used = {p.pool: state.ledger.used(stands.name, p.pool) for p in stands.pools}
        over = [oddity.message for oddity in over_ceilings(tenant, used)]
    yield _condition(OVER_QUOTA, "OverCeiling", over, "WithinCeilings", "uses no more than it may")
    short = [
        f"{gpus_text(each.guaranteed_milli)} are guaranteed to tenants{in_pool(each.pool)}, "
        f"and the nodes have {gpus_text(each.capacity_milli)}"
        for each in promised
        if tenant is not None and tenant.quota_of(each.pool).guarantee_milli
    ]
    yield _condition(
        *(OVERCOMMITTED, "MoreThanNodesHave", short),
        *("BackedByNodes", "the nodes have what is guaranteed"),
    )
    odd = [kind for kind in Odd if stands.odd.get(kind)]
    told = [f"{_pods(stands.odd[kind])} {_ODD[kind]} ({kind})" for kind in odd if kind in _ODD]
    reason = str(odd[0]) if len(odd) == 1 else "Several"
    yield _condition(ODD_PODS, reason, told, "AsCharged", "its pods are as they were charged")


def _condition(kind: str, why: str, told: list[str], why_not: str, otherwise: str) -> Object:
    return {
        "type": kind,
        "status": "True" if told else "False",
        "reason": why if told else why_not,
        "message": "; ".join(told)[:_MOST_TEXT] or otherwise,
    }


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _holds(item: Seen, told: Object) -> bool:
    old = item.conditions.get(raw.text(told, "type"), {})
    return all(old.get(key) == value for key, value in told.items())


def _dated(item: Seen, told: Object, now: int) -> Object:
    """Return a condition with the time since when it is True or False."""
    old = item.conditions.get(raw.text(told, "type"), {})
    since = raw.text(old, "lastTransitionTime")
    is_same = since and old.get("status") == told["status"]
    return {**told, "lastTransitionTime": since if is_same else rfc3339(now)}
