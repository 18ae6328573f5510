# SPDX-License-Identifier: Apache-2.0
"""In words what keeps a unit waiting, with names and limits but without what moves all the time."""

from collections.abc import Callable, Iterable

from policies.admission.charging import amount as gpus_text
from policies.model.tenant import Tenant
from policies.quota.planning.options import Option
from policies.quota.planning.units import Unit
from policies.quota.planning.values import Hold, Why
from policies.quota.planning.verdict import Verdict, Way, first_hold, in_pool

NEXT = Hold(Why.NEXT, "goes with one of the next batches")
NO_OWNER = Hold(Why.NO_TENANT, "its namespace belongs to no tenant")


def hold_of_quota(
    unit: Unit, verdict: Verdict, tenant: str, reaches: Callable[[Option], bool]
) -> Hold:
    """Return what holds a unit that its tenant's quota allows no way, in pools it can reach."""
    reachable = Verdict((), tuple(h for h in verdict.holds if all(map(reaches, h[0]))))
    for hold in first_hold(reachable):
        return hold
    return hold_of_nodes(unit, verdict, possible=False, tenant=tenant)


def hold_of_borrowing(unit: Unit, ways: Iterable[Way], tenant: Tenant) -> Hold:
    """Return that there is not enough to borrow for any of these ways."""
    pool, milli = next(way.borrows[0] for way in ways if way.borrows)

    def text() -> str:
        cohort = f"cohort {tenant.cohort}" if tenant.cohort is not None else "no cohort"
        return (
            f"{tenant.name} would borrow {gpus_text(milli)} past its guarantee"
            f"{in_pool(pool)}, and there is less to lend ({cohort})"
        )

    return _remembered(unit, Why.BORROWING, f"{milli} {pool}", text)


def hold_of_nodes(unit: Unit, verdict: Verdict, *, possible: bool, tenant: str) -> Hold:
    """Return that no node has room now, or that none ever could."""
    if not (verdict.ways or verdict.holds):
        return _remembered(
            unit,
            Why.NO_SUCH_NODE,
            "",
            lambda: f"no pool in which {tenant} has quota has nodes that fit its node selectors",
        )
    if not possible:
        return _remembered(
            unit, Why.NO_SUCH_NODE, "n", lambda: "no node could hold it, were it empty"
        )
    if unit.gang is not None:
        return _remembered(
            unit,
            Why.NO_ROOM,
            "g",
            lambda: "quota is free, but nodes have no room for all of its gang",
        )
    return _remembered(unit, Why.NO_ROOM, "", lambda: "quota is free, but no node has room for it")


def hold_of_kept_room(unit: Unit, holder: str) -> Hold:
    """Return that what is free on nodes, or to be borrowed, is kept for another."""
    return _remembered(
        unit,
        Why.RESERVED,
        holder,
        lambda: f"the room on nodes or quota that is free is kept for {holder}",
    )


def hold_of_kept_quota(unit: Unit, holder: str) -> Hold:
    """Return that what its own tenant has left is kept for another of that."""
    found = unit.holds.get((Why.RESERVED, f"quota {holder}"))
    if found is None:
        text = f"what is left of its tenant's own quota is kept for {holder}"
        found = Hold(Why.RESERVED, text, is_of_quota=True)
        unit.holds[Why.RESERVED, f"quota {holder}"] = found
    return found


def hold_of_gang(unit: Unit, text: str) -> Hold:
    """Return that the gang is not as it says."""
    name = unit.gang.key.name if unit.gang is not None else ""
    return _remembered(unit, Why.GANG, text, lambda: f"gang {name}: {text}")


def _remembered(unit: Unit, why: Why, key: str, text: Callable[[], str]) -> Hold:
    found = unit.holds.get((why, key))
    if found is None:
        found = unit.holds[why, key] = Hold(why, text())
    return found
