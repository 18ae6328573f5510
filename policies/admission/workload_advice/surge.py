# SPDX-License-Identifier: Apache-2.0
"""A Deployment whose rolling update needs a pod more than its tenant's quota has room for.

Source: apps/v1 RollingUpdateDeployment: maxSurge and maxUnavailable are 25% unless set; of a
percentage the first is rounded up and the second down, and where both come to 0 the second is 1
(kubernetes pkg/controller/deployment/util ResolveFenceposts).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from policies.admission.charging import Cost, amount, gpus
from policies.admission.fitting import gib
from policies.admission.over_quota import left_for_all
from policies.admission.workload_advice.subject import Advised, Gated, whole
from policies.admission.workload_wording import total_cost
from policies.cluster.reading import mapping
from policies.model.tenant import Tenant
from policies.model.usage import TenantUsage

_DEPLOYMENTS: Final = ("apps", "deployments")
_DEFAULT: Final = "25%"
_PERCENT: Final = re.compile(r"([0-9]{1,3})%", re.ASCII)


def surge(advised: Advised, found: Gated) -> Iterator[str]:
    """Advise to replace pods one for one."""
    count = found.judged.pods.count
    if (advised.kind.group, advised.kind.resource) != _DEPLOYMENTS or not count:
        return
    strategy = mapping(advised.raw, "spec", "strategy")
    update = mapping(strategy, "rollingUpdate")
    spare = _number(update, "maxUnavailable", count, is_up=False)
    if (
        strategy.get("type") == "Recreate"
        or _number(update, "maxSurge", count, is_up=True) == 0
        or (lack := _lack(advised, found, count)) is None
    ):
        return
    one = amount(_cost(found, 1).milli)
    and_so = " and waits for one of them to end" if spare else ", and they wait for it to run"
    also = "" if spare else " and maxUnavailable: 1"
    yield (
        f"in a rolling update a new pod of {one} beside the {count} old ones finds no room "
        f"({lack}){and_so}: use maxSurge: 0{also}"
    )


def _lack(advised: Advised, found: Gated, count: int) -> str | None:
    """Return what there is no room in for one pod more; None if there is, or not for the rest.

    What the old pods of a Deployment take is in its tenant's usage already.
    """
    tenant, reach = found.tenant, found.judged.outcome.reach
    before, after = _cost(found, count), _cost(found, count + 1)
    if found.judged.outcome.exclusive:
        guarantee = sum(reach.guarantees_milli(tenant))
        if before.milli <= guarantee < after.milli:
            return f"{tenant.name}'s guarantee is {gpus(guarantee)} GPUs, for exclusive ones"
    usage = found.context.facts.usage.get(tenant.name)
    is_counted = usage is not None and not advised.work.is_new
    if is_counted:
        before, after = Cost(), _cost(found, 1)
    bounds = tuple(_bounds(found, usage or TenantUsage(), before, after))
    if not is_counted and any(bound.before > bound.free for bound in bounds):
        return None
    full = next((bound for bound in bounds if bound.after > bound.free), None)
    if full is None:
        return None
    return full.told if usage is None else full.told_with_usage


@dataclass(frozen=True, slots=True)
class _Bound:
    """A ceiling of a tenant, what is free of it, and what is asked of that before and after."""

    free: int
    before: int
    after: int
    told: str
    told_with_usage: str


def _bounds(found: Gated, usage: TenantUsage, before: Cost, after: Cost) -> Iterator[_Bound]:
    tenant = found.tenant
    left = left_for_all(tenant, usage, found.judged.outcome.reach)
    if left is not None:
        texts = _texts(tenant, gpus(left.free_milli), gpus(left.ceiling_milli), "GPUs")
        yield _Bound(left.free_milli, before.milli, after.milli, *texts)
    if tenant.memory_mib is not None:
        free = max(0, tenant.memory_mib - usage.memory_mib)
        texts = _texts(tenant, gib(free), gib(tenant.memory_mib), "GPU memory")
        yield _Bound(free, before.least_mib, after.least_mib, *texts)
    for name, ceiling in tenant.resources.items():
        free = max(0, ceiling - usage.counts.get(name, 0))
        texts = _texts(tenant, str(free), str(ceiling), name)
        yield _Bound(free, before.counts.get(name, 0), after.counts.get(name, 0), *texts)


def _texts(tenant: Tenant, free: str, ceiling: str, unit: str) -> tuple[str, str]:
    return (
        f"{tenant.name}'s ceiling is {ceiling} {unit}",
        f"{tenant.name} has {free} of {ceiling} {unit} left",
    )


def _cost(found: Gated, count: int) -> Cost:
    pods = replace(found.judged.pods, count=count)
    return total_cost([replace(found.judged, pods=pods)], found.context.policies.catalog)


def _number(update: Mapping[str, object], field: str, count: int, *, is_up: bool) -> int:
    """Return how many pods a number or percentage of the replicas is."""
    value = update.get(field, _DEFAULT)
    if (number := whole(value)) is not None:
        return number
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    hundredths = count * int(percent[1] if percent else _DEFAULT.rstrip("%"))
    return -(-hundredths // 100) if is_up else hundredths // 100
