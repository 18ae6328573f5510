# SPDX-License-Identifier: Apache-2.0
"""What could never be admitted, whatever else runs: more than a ceiling, or than a guarantee."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policies.admission.charging import Cost, gpus
from policies.admission.fitting import gib, gib_up
from policies.admission.reach import Reach
from policies.model.decision import Violation
from policies.model.reasons import Reason
from policies.model.tenant import Tenant

GPUS: Final = " GPUs"


@dataclass(frozen=True, slots=True)
class Excess:
    """A ceiling that a cost is above, both as people read them; `of` says of what."""

    ceiling: str
    asked: str
    of: str


def excesses(tenant: Tenant, cost: Cost, gpus_milli: int | None) -> Iterator[Excess]:
    """Yield the ceilings of a tenant that a cost is above, that of GPUs as given."""
    memory = tenant.memory_mib
    if gpus_milli is not None and cost.milli > gpus_milli:
        yield Excess(gpus(gpus_milli), gpus(cost.milli), GPUS)
    if memory is not None and cost.least_mib > memory:
        yield Excess(gib(memory), gib_up(cost.least_mib), " of GPU memory")
    for name, count in cost.counts.items():
        if count > tenant.resources.get(name, count):
            yield Excess(str(tenant.resources[name]), str(count), f" {name}")


def never_admitted(
    tenant: Tenant, cost: Cost, reach: Reach, *, exclusive: bool
) -> Iterator[Violation]:
    """Refuse at once what could never be admitted; what is free now is the quota model's matter.

    Exclusive work is never taken back, so what it uses must be its tenant's by guarantee.
    """
    over = [
        Violation(
            Reason.OVER_CEILING,
            f"exceeded quota: tenant {tenant.name} has a ceiling of {excess.ceiling}"
            f"{excess.of}, this pod asks {excess.asked}: ask for at most {excess.ceiling}",
        )
        for excess in excesses(tenant, cost, tenant.most_ceiling_milli)
    ]
    yield from over or _nowhere(tenant, cost, reach)
    guarantee = max(reach.guarantees_milli(tenant))
    if exclusive and not over and cost.milli > guarantee:
        of_pools = f" in {reach}" if tenant.most_guarantee_milli > guarantee else ""
        yield Violation(
            Reason.OVER_GUARANTEE,
            f"exceeded quota: exclusive GPUs are never taken back, so they must fit the guarantee "
            f"of tenant {tenant.name}{of_pools}, {gpus(guarantee)} GPUs; this pod asks "
            f"{gpus(cost.milli)}",
            passing=reach.by_nodes and cost.milli <= tenant.most_guarantee_milli,
        )


def _nowhere(tenant: Tenant, cost: Cost, reach: Reach) -> Iterator[Violation]:
    """Refuse what would fit a ceiling, but none of a pool that it can run in."""
    ceiling = reach.most_ceiling_milli(tenant)
    if ceiling is None or cost.milli <= ceiling:
        return
    only = "only nodes of {} offer this form" if reach.by_nodes else "this pod can only run in {}"
    advice = f"ask for at most {gpus(ceiling)}" if ceiling else "use another form or pool"
    yield Violation(
        Reason.OVER_CEILING,
        f"exceeded quota: {only.format(reach)}, where tenant {tenant.name} has a ceiling of "
        f"{gpus(ceiling)} GPUs; this pod asks {gpus(cost.milli)}: {advice}",
        passing=reach.by_nodes,
    )
