# SPDX-License-Identifier: Apache-2.0
"""What is odd about what is counted, for Events and metrics; counting it is not done here."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from policies.admission.charging import amount as as_text
from policies.model.tenant import Tenant
from policies.quota.amount import Amount, total
from policies.quota.pods import QuotaPod

MOST_OF_A_KIND = 100
"""Oddities of one kind that are listed; all are counted."""


class Odd(StrEnum):
    """Kinds of oddities, as Events and metrics name them."""

    SKIPPED_GATE = "SkippedGate"
    """A pod has GPUs and no charge: it is older than Sluice, or the gate was taken off by force."""
    UNKNOWN_CHARGE = "UnknownCharge"
    """No label and no profile tells what a pod costs; it counts as the most that it can be."""
    NO_TENANT = "NoTenant"
    """A pod has GPUs in a namespace of no tenant."""
    TENANT_GONE = "TenantGone"
    """A pod's namespace belongs to no tenant any more; the one it was charged to goes on paying."""
    NAMESPACE_MOVED = "NamespaceMoved"
    """A pod's namespace belongs to another tenant than the one it was charged to."""
    CHARGE_DIFFERS = "ChargeDiffers"
    """A pod costs another amount than it was charged, by the very policies it was charged by."""
    LOST_NODE = "LostNode"
    """A deleted pod's grace is over on a node that is lost; it is not counted any more."""
    OVER_CEILING = "OverCeiling"
    """A tenant uses more than its ceiling, which was lowered or whose namespaces have grown."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """One of them. `name` and `uid` are a pod's, empty where a tenant is meant."""

    kind: Odd
    tenant: str
    message: str
    namespace: str = ""
    name: str = ""
    uid: str = ""


def of_pod(kind: Odd, tenant: str, pod: QuotaPod, message: str) -> Oddity:
    """Return an oddity of a pod."""
    return Oddity(kind, tenant, message, pod.namespace, pod.name, pod.uid)


def over_ceilings(tenant: Tenant, used: Mapping[str, Amount]) -> Iterator[Oddity]:
    """Yield where a tenant uses more than a ceiling; `used` is by pool."""
    for pool in sorted(used):
        ceiling, milli = tenant.quota_of(pool).ceiling_milli, used[pool].milli
        if ceiling is not None and milli > ceiling:
            where = f" in pool {pool}" if pool else ""
            yield _over(tenant, as_text(milli), as_text(ceiling), where)
    whole = total(used.values())
    if tenant.memory_mib is not None and whole.mib > tenant.memory_mib:
        yield _over(tenant, f"{whole.mib} MiB", f"{tenant.memory_mib} MiB", " of GPU memory")
    for name, most in sorted(tenant.resources.items()):
        if whole.counts.get(name, 0) > most:
            yield _over(tenant, str(whole.counts[name]), str(most), f" of {name}")


def _over(tenant: Tenant, used: str, ceiling: str, where: str) -> Oddity:
    message = f"uses {used}{where}, which is more than its ceiling of {ceiling}"
    return Oddity(Odd.OVER_CEILING, tenant.name, message)


def listed(oddities: Iterable[Oddity]) -> tuple[Oddity, ...]:
    """Return the first of one kind, by tenant and name."""
    ordered = sorted(oddities, key=lambda o: (o.tenant, o.namespace, o.name, o.message))
    return tuple(ordered[:MOST_OF_A_KIND])
