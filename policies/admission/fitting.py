# SPDX-License-Identifier: Apache-2.0
"""The smallest share that covers a need: by cost, among what the tenant may use and nodes offer."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from policies.admission.context import Context
from policies.model.decision import Violation
from policies.model.facts import Offer
from policies.model.policy import Fit, Policy
from policies.model.profile import Profile, Strength
from policies.model.reasons import Reason
from policies.rewrite.offers import most_known_mib, offer

_ORDER = (Strength.NONE, Strength.COOPERATIVE, Strength.PROCESS, Strength.HARDWARE)
_GIB = 1024
_DECIMALS_BELOW = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one GPU container needs: devices of a vendor, usable MiB and percent of compute each.

    `claimed` is the profile that the first pass has given, if this is the second.
    """

    where: str
    vendor: str
    count: int
    memory_mib: int
    compute_percent: int = 0
    claimed: str | None = None


def is_at_least(strength: Strength, minimum: Strength) -> bool:
    """Tell whether a limit is as hard as demanded."""
    return _ORDER.index(strength) >= _ORDER.index(minimum)


def choose(context: Context, policy: Policy, fit: Fit, wanted: Wanted) -> Profile | Violation:
    """Return the cheapest candidate that covers the need; the first listed of equal ones.

    What nodes offer and say of their memory may have moved since the first pass, so its choice
    stands while the policy still allows it and it may have covered the need then.
    """
    usable = tuple(_usable(context, policy, fit, wanted))
    claimed = next((p for p in usable if p.name == wanted.claimed), None)
    if claimed is not None and _may_have_covered(context, claimed, wanted):
        return claimed
    offered = [p for p in usable if _offer(context, p).is_offered]
    covering = [p for p in offered if _covers(context, p, wanted)]
    if covering:
        return min(covering, key=cost)
    return Violation(Reason.NO_CANDIDATE_FITS, _why(context, policy, wanted, usable, offered))


def cost(profile: Profile) -> Fraction:
    """Return what one unit costs, in GPUs."""
    return Fraction(profile.charge.numerator, profile.charge.denominator)


def _usable(context: Context, policy: Policy, fit: Fit, wanted: Wanted) -> Iterable[Profile]:
    """Yield the candidates that policy and tenant allow at all, as the policy lists them."""
    limit, tenant = policy.memory_limit, context.tenant
    for name in fit.candidates:
        profile = context.policies.profiles[name]
        if (
            profile.vendor == wanted.vendor
            and (tenant is None or tenant.may_use(name))
            and (wanted.count == 1 or profile.allow_multiple)
            and (limit is None or is_at_least(profile.strength, limit.minimum_strength))
        ):
            yield profile


def _may_have_covered(context: Context, profile: Profile, wanted: Wanted) -> bool:
    """Tell whether no table excludes that nodes of another time had memory enough."""
    known = most_known_mib(profile, context.policies.catalog)
    return profile.compute_percent >= wanted.compute_percent and (
        known is None or known >= wanted.memory_mib or _covers(context, profile, wanted)
    )


def _covers(context: Context, profile: Profile, wanted: Wanted) -> bool:
    memory = _offer(context, profile).memory_mib
    return (
        memory is not None
        and memory >= wanted.memory_mib
        and profile.compute_percent >= wanted.compute_percent
    )


def _offer(context: Context, profile: Profile) -> Offer:
    policies = context.policies
    return offer(profile, context.facts.cluster, policies.catalog, policies.generation)


def _why(
    context: Context,
    policy: Policy,
    wanted: Wanted,
    usable: tuple[Profile, ...],
    offered: list[Profile],
) -> str:
    need = f"{wanted.where} needs {gib_up(wanted.memory_mib)} on each GPU"
    if wanted.compute_percent:
        need += f" and {wanted.compute_percent} % of its compute"
    if not usable:
        uses = f"use {wanted.count} of" if wanted.count > 1 else "use"
        return f"{need}: policy {policy.name} has no candidate that this pod may {uses}"
    if not offered:
        names = ", ".join(profile.name for profile in usable)
        return f"{need}: no node offers any of {names} now"
    sizes = [(_offer(context, p).memory_mib or 0, p.name) for p in offered]
    largest, name = max(sizes)
    if largest >= wanted.memory_mib:
        names = ", ".join(profile.name for profile in offered)
        return f"{need}: none of {names} has both; state less compute"
    several = ", or use several GPUs" if any(p.allow_multiple for p in offered) else ""
    return f"{need}: the largest share here has {gib(largest)} ({name}); state less{several}"


def gib(mib: int) -> str:
    """Return MiB as people read them, never more than there is: 81559 is `79 GiB`."""
    return _tenths(mib * 10 // _GIB)


def gib_up(mib: int) -> str:
    """Return a need as people read it, never less than it is: 8193 is `8.1 GiB`."""
    tenths = -(-mib * 10 // _GIB)
    return _tenths(tenths if tenths < _DECIMALS_BELOW * 10 else -(-mib // _GIB) * 10)


def _tenths(tenths: int) -> str:
    whole, rest = divmod(tenths, 10)
    return f"{whole}.{rest} GiB" if rest and whole < _DECIMALS_BELOW else f"{whole} GiB"
