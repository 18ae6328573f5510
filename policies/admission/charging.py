# SPDX-License-Identifier: Apache-2.0
"""What a pod will cost its tenant, in milli-GPU, and whether that could ever be given."""

from collections import Counter
from collections.abc import Iterable, Mapping

from policies.admission.grant import Grant
from policies.model.decision import Violation
from policies.model.reasons import Reason
from policies.model.tenant import Tenant
from policies.pod.asked import effective_counts
from policies.pod.view import ContainerKind
from policies.quota.amount import share, total


def charge_milli(grants: Iterable[Grant]) -> int:
    """Return the charge of the effective request; shares of one size are rounded up together."""
    listed = tuple(grants)
    charges = {grant.profile.name: grant.profile.charge for grant in listed}
    return total(share(charges[name], count) for name, count in units(listed).items()).milli


def units(grants: Iterable[Grant]) -> Mapping[str, int]:
    """Return the pod's effective request by profile; a container may ask by several names."""
    by_container: dict[str, tuple[ContainerKind, Counter[str]]] = {}
    for grant in grants:
        container = grant.asked.container
        _, counts = by_container.setdefault(container.name, (container.kind, Counter()))
        counts[grant.profile.name] += grant.count
    return effective_counts(by_container.values())


def never_admitted(tenant: Tenant, milli: int, *, exclusive: bool) -> Violation | None:
    """Refuse at once what could never be admitted; what is free now is the quota model's matter.

    Exclusive work is never taken back, so what it uses must be its tenant's by guarantee.
    """
    ceiling, guarantee = tenant.most_ceiling_milli, tenant.most_guarantee_milli
    if ceiling is not None and milli > ceiling:
        return Violation(
            Reason.OVER_CEILING,
            f"exceeded quota: tenant {tenant.name} has a ceiling of {gpus(ceiling)} GPUs, "
            f"this pod asks {gpus(milli)}: ask for at most {gpus(ceiling)}",
        )
    if exclusive and guarantee is not None and milli > guarantee:
        return Violation(
            Reason.OVER_GUARANTEE,
            f"exceeded quota: exclusive GPUs are never taken back, so they must fit the guarantee "
            f"of tenant {tenant.name}, {gpus(guarantee)} GPUs; this pod asks {gpus(milli)}",
        )
    return None


def gpus(milli: int) -> str:
    """Return milli-GPU as people read them: 1500 is 1.5."""
    return f"{milli / 1000:.3f}".rstrip("0").rstrip(".")


def amount(milli: int) -> str:
    """Return milli-GPU with their unit, as people read them: 1500 is `1.5 GPUs`."""
    number = gpus(milli)
    return f"{number} GPU" if number == "1" else f"{number} GPUs"
