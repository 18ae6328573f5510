# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from policies.quota.borrowing import Balance, Standing, giving_back, lendable, lent


def standing(
    tenant: str,
    guarantee: int,
    used: int,
    lends: int = 0,
    cohort: str = "main",
    priority: int = 0,
) -> Standing:
    return Standing(tenant, cohort, guarantee, used, lends, priority)


def test_lendable_is_what_lies_above_the_peak() -> None:
    assert lendable(8000, 3000, enabled=True) == 5000
    assert lendable(8000, 9000, enabled=True) == 0


def test_an_unknown_history_and_a_tenant_that_does_not_lend_give_nothing() -> None:
    assert lendable(8000, None, enabled=True) == 0
    assert lendable(8000, 0, enabled=False) == 0


def test_a_cohort_borrows_what_its_tenants_lend() -> None:
    balance = Balance(0, [standing("idle", 8000, 0, lends=8000), standing("busy", 4000, 6000)])
    assert balance.room_of("main") == 6000
    assert balance.admits("main", 6000)
    assert not balance.admits("main", 6001)


def test_nothing_is_lent_across_cohorts() -> None:
    balance = Balance(
        0, [standing("idle", 8000, 0, lends=8000, cohort="a"), standing("b", 0, 0, cohort="b")]
    )
    assert not balance.admits("b", 1)


def test_what_lies_outside_of_guarantees_is_for_any_cohort_once() -> None:
    balance = Balance(3000, [standing("a", 0, 0, cohort="a"), standing("b", 0, 0, cohort="b")])
    balance.borrow("a", 2000)
    assert balance.room_of("b") == 1000
    balance.borrow("b", 1000)
    assert not balance.admits("a", 1)
    assert not balance.admits("b", 1)


def test_lent_guarantees_that_a_cohort_needs_leave_the_spare_to_others() -> None:
    balance = Balance(
        2000,
        [standing("idle", 4000, 0, lends=4000, cohort="a"), standing("x", 0, 4000, cohort="a")],
    )
    assert balance.room_of("b") == 2000
    assert balance.room_of("a") == 2000


def test_more_borrowed_than_may_be_lets_nobody_borrow() -> None:
    balance = Balance(0, [standing("idle", 4000, 4000), standing("x", 0, 1000)])
    assert balance.room_of("main") == -1000
    assert not balance.admits("main", 1)
    assert not balance.admits("other", 1)
    assert balance.admits("main", 0)


def test_without_bound_everything_is_admitted() -> None:
    assert Balance(None).admits("main", 10**9)


_STANDINGS = st.lists(
    st.builds(
        Standing,
        tenant=st.sampled_from("abcdef"),
        cohort=st.sampled_from(["x", "y"]),
        guarantee_milli=st.integers(0, 9),
        used_milli=st.integers(0, 12),
        lendable_milli=st.integers(0, 9),
    ),
    unique_by=lambda s: s.tenant,
)


@given(st.integers(0, 12), _STANDINGS, st.sampled_from(["x", "y"]), st.integers(1, 9))
def test_the_room_is_what_the_law_says(
    spare: int, standings: list[Standing], cohort: str, more: int
) -> None:
    total = 0
    for each in ("x", "y"):
        of_it = [s for s in standings if s.cohort == each]
        borrowed = sum(s.borrowed_milli for s in of_it) + (more if each == cohort else 0)
        total += max(0, borrowed - sum(s.lendable_milli for s in of_it))
    assert Balance(spare, standings).admits(cohort, more) == (total <= spare)


@given(st.integers(0, 12) | st.none(), _STANDINGS)
def test_what_is_lent_is_what_the_spare_does_not_cover(
    spare: int | None, standings: list[Standing]
) -> None:
    told = lent(spare, standings)
    borrowed = sum(s.borrowed_milli for s in standings)
    from_spare = borrowed if spare is None else min(spare, borrowed)
    assert sum(told.values()) <= borrowed - from_spare
    assert all(told[s.tenant] <= s.idle_milli for s in standings)


def test_lenders_are_told_pro_rata_after_the_spare() -> None:
    told = lent(
        1000,
        [
            standing("a", 6000, 0, lends=6000),
            standing("b", 3000, 0, lends=3000),
            standing("x", 0, 4000),
        ],
    )
    assert told == {"a": 2000, "b": 1000, "x": 0}


def test_the_lowest_priority_gives_back_first_then_who_borrows_most_beside_its_guarantee() -> None:
    order = giving_back(
        [
            standing("high", 0, 9000, priority=10),
            standing("little", 8000, 9000),
            standing("much", 1000, 9000),
            standing("within", 8000, 8000),
        ]
    )
    assert [s.tenant for s in order] == ["much", "little", "high"]
