# SPDX-License-Identifier: Apache-2.0
from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from policies.quota.fairshare import Claim, fair_shares

_MILLI = st.one_of(st.integers(0, 20), st.integers(0, 200_000))


@st.composite
def claims(draw: st.DrawFn) -> list[Claim]:
    return [
        Claim(
            name=name,
            request_milli=draw(_MILLI),
            guarantee_milli=draw(_MILLI),
            ceiling_milli=draw(st.none() | _MILLI),
            weight=draw(st.integers(0, 7)),
        )
        for name in draw(st.lists(st.sampled_from("abcdefgh"), unique=True))
    ]


@given(_MILLI, claims())
def test_shares_add_up_to_the_capacity_or_to_all_that_is_asked(
    capacity: int, asked: list[Claim]
) -> None:
    shares = fair_shares(capacity, asked)
    assert sum(shares.values()) == min(capacity, sum(claim.demand_milli for claim in asked))


@given(_MILLI, claims())
def test_nobody_gets_more_than_it_asks_or_may_have(capacity: int, asked: list[Claim]) -> None:
    shares = fair_shares(capacity, asked)
    for claim in asked:
        assert 0 <= shares[claim.name] <= claim.request_milli
        assert claim.ceiling_milli is None or shares[claim.name] <= claim.ceiling_milli


@given(_MILLI, claims())
def test_everybody_gets_its_guarantee_where_capacity_suffices(
    capacity: int, asked: list[Claim]
) -> None:
    floors = {claim.name: claim.floor_milli for claim in asked}
    shares = fair_shares(max(capacity, sum(floors.values())), asked)
    assert all(shares[name] >= floor for name, floor in floors.items())


@given(_MILLI, claims())
def test_guarantees_past_the_capacity_shrink_in_proportion(
    capacity: int, asked: list[Claim]
) -> None:
    floors = {claim.name: claim.floor_milli for claim in asked}
    whole = sum(floors.values())
    capacity = min(capacity, whole)
    shares = fair_shares(capacity, asked)
    for name, floor in floors.items():
        exact = Fraction(capacity * floor, whole) if whole else Fraction(0)
        assert abs(shares[name] - exact) < 1


@given(_MILLI, claims(), st.randoms(use_true_random=False))
def test_the_order_of_claims_makes_no_difference(
    capacity: int, asked: list[Claim], random: Random
) -> None:
    shuffled = list(asked)
    random.shuffle(shuffled)
    assert fair_shares(capacity, asked) == fair_shares(capacity, shuffled)


@given(_MILLI, st.integers(0, 1000), claims())
def test_more_capacity_leaves_nobody_with_less_but_for_rounding(
    capacity: int, more: int, asked: list[Claim]
) -> None:
    before, after = fair_shares(capacity, asked), fair_shares(capacity + more, asked)
    assert all(after[claim.name] >= before[claim.name] - 1 for claim in asked)


@given(_MILLI, claims())
def test_who_gets_less_than_it_asks_has_no_neighbour_above_the_common_level(
    capacity: int, asked: list[Claim]
) -> None:
    weighted = [claim for claim in asked if claim.weight]
    shares = fair_shares(capacity, weighted)
    if capacity < sum(claim.floor_milli for claim in weighted):
        return
    above = {c.name: Fraction(shares[c.name] - c.floor_milli, c.weight) for c in weighted}
    for poor in weighted:
        if shares[poor.name] < poor.demand_milli:
            for other in weighted:
                # One milli of rounding on either side.
                slack = Fraction(1, poor.weight) + Fraction(1, other.weight)
                assert above[other.name] <= above[poor.name] + slack


def test_equal_weights_share_equally_and_ties_go_by_name() -> None:
    asked = [Claim(name, 1000) for name in ("c", "b", "a")]
    assert fair_shares(1000, asked) == {"a": 334, "b": 333, "c": 333}


def test_a_weight_of_two_gets_twice_the_rest() -> None:
    asked = [
        Claim("small", 9000, guarantee_milli=1000, weight=1),
        Claim("large", 9000, guarantee_milli=1000, weight=2),
    ]
    assert fair_shares(8000, asked) == {"small": 3000, "large": 5000}


def test_what_a_capped_claim_leaves_goes_to_the_others_by_weight() -> None:
    asked = [
        Claim("capped", 9000, ceiling_milli=1000, weight=8),
        Claim("one", 9000, weight=1),
        Claim("two", 9000, weight=2),
    ]
    assert fair_shares(7000, asked) == {"capped": 1000, "one": 2000, "two": 4000}


def test_without_weight_there_is_only_what_all_others_leave() -> None:
    asked = [Claim("last", 4000, weight=0), Claim("first", 3000)]
    assert fair_shares(2000, asked) == {"first": 2000, "last": 0}
    assert fair_shares(5000, asked) == {"first": 3000, "last": 2000}


def test_no_capacity_gives_nothing_and_no_claims_take_nothing() -> None:
    assert fair_shares(-5, [Claim("a", 1000, guarantee_milli=500)]) == {"a": 0}
    assert fair_shares(5000, []) == {}
