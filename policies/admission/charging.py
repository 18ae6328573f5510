# SPDX-License-Identifier: Apache-2.0
"""What a pod will cost its tenant: milli-GPU, usable memory and devices by name."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from policies.admission.grant import Grant
from policies.model.profile import Profile
from policies.pod.asked import effective_counts
from policies.pod.view import ContainerKind
from policies.quota.amount import share, total
from policies.rewrite.offers import known_mib
from policies.vendors import Catalog


@dataclass(frozen=True, slots=True)
class Cost:
    """What a pod's effective request costs: milli-GPU, usable MiB, devices by resource name.

    `least_mib` leaves out the forms of which nothing tells the memory, so it may be more.
    """

    milli: int = 0
    least_mib: int = 0
    is_mib_known: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def memory_mib(self) -> int | None:
        """Return the memory, None where it is not known of every form."""
        return self.least_mib if self.is_mib_known else None


def cost_of(grants: Iterable[Grant], catalog: Catalog) -> Cost:
    """Return the cost of a pod's effective request."""
    listed = tuple(grants)
    profiles = {grant.profile.name: grant.profile for grant in listed}
    counts = _effective(listed, lambda grant: grant.profile.resource)
    return price(profiles, units(listed), counts, catalog)


def price(
    profiles: Mapping[str, Profile],
    by_profile: Mapping[str, int],
    by_resource: Mapping[str, int],
    catalog: Catalog,
) -> Cost:
    """Return the cost of so many units; shares of one size are rounded up together.

    The memory of a form is that on the smallest of its boards: no node makes it less.
    """
    sizes = {name: known_mib(profiles[name], catalog) for name in by_profile}
    return Cost(
        milli=total(share(profiles[name].charge, n) for name, n in by_profile.items()).milli,
        least_mib=sum((sizes[name] or 0) * n for name, n in by_profile.items()),
        is_mib_known=bool(sizes) and None not in sizes.values(),
        counts=by_resource,
    )


def units(grants: Iterable[Grant]) -> Mapping[str, int]:
    """Return the pod's effective request by profile; a container may ask by several names."""
    return _effective(grants, lambda grant: grant.profile.name)


def _effective(grants: Iterable[Grant], name: Callable[[Grant], str]) -> Mapping[str, int]:
    by_container: dict[str, tuple[ContainerKind, Counter[str]]] = {}
    for grant in grants:
        container = grant.asked.container
        _, counts = by_container.setdefault(container.name, (container.kind, Counter()))
        counts[name(grant)] += grant.count
    return effective_counts(by_container.values())


def gpus(milli: int) -> str:
    """Return milli-GPU as people read them: 1500 is 1.5."""
    return f"{milli / 1000:.3f}".rstrip("0").rstrip(".")


def amount(milli: int) -> str:
    """Return milli-GPU with their unit, as people read them: 1500 is `1.5 GPUs`."""
    number = gpus(milli)
    return f"{number} GPU" if number == "1" else f"{number} GPUs"
