# SPDX-License-Identifier: Apache-2.0
"""What could never be admitted, whatever else runs: more than a ceiling, or than a guarantee."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policies.admission.charging import Cost, gpus
from policies.admission.fitting import gib, gib_up
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


def never_admitted(tenant: Tenant, cost: Cost, *, exclusive: bool) -> Iterator[Violation]:
    """Refuse at once what could never be admitted; what is free now is the quota model's matter.

    Exclusive work is never taken back, so what it uses must be its tenant's by guarantee.
    """
    guarantee = tenant.most_guarantee_milli
    over = [
        Violation(
            Reason.OVER_CEILING,
            f"exceeded quota: tenant {tenant.name} has a ceiling of {excess.ceiling}"
            f"{excess.of}, this pod asks {excess.asked}: ask for at most {excess.ceiling}",
        )
        for excess in excesses(tenant, cost, tenant.most_ceiling_milli)
    ]
    yield from over
    if exclusive and not over and cost.milli > guarantee:
        yield Violation(
            Reason.OVER_GUARANTEE,
            f"exceeded quota: exclusive GPUs are never taken back, so they must fit the guarantee "
            f"of tenant {tenant.name}, {gpus(guarantee)} GPUs; this pod asks {gpus(cost.milli)}",
        )
