# SPDX-License-Identifier: Apache-2.0
"""Exact sums of amounts, and charges that come back from their annotation as they went in."""

import orjson
import pytest

from policies.model.profile import Charge
from policies.quota.account import Sum
from policies.quota.amount import NOTHING, Amount, share, total
from policies.quota.charge import ChargeRecord, read_charge

THIRD = Amount({3: 1}, 10, {"shared": 1})
RECORD = ChargeRecord("chat", "h100", THIRD, "g1", 7, exclusive=True, reclaimable=False)


def test_shares_of_a_size_are_rounded_up_once() -> None:
    assert THIRD.milli == 334
    assert total([THIRD] * 3).milli == 1000
    assert THIRD.plus(Amount({4: 1})).milli == 334 + 250


def test_what_is_added_and_taken_away_leaves_nothing() -> None:
    assert THIRD.plus(THIRD).minus(THIRD.times(2)) == NOTHING
    assert NOTHING.minus(THIRD).plus(THIRD).is_nothing
    assert THIRD.times(0).is_nothing
    assert not THIRD.is_nothing


def test_a_running_sum_is_exact_and_has_no_entries_of_zero() -> None:
    running = Sum()
    running.add(THIRD, 1)
    running.add(Amount({3: 2, 8: 1}, 5), 1)
    assert running.amount == Amount({3: 3, 8: 1}, 15, {"shared": 1})
    assert running.amount is running.amount

    running.add(THIRD, -1)
    running.add(Amount({3: 2, 8: 1}, 5), -1)

    assert running.amount == NOTHING
    assert running.is_nothing
    running.add(Amount({5: 0}, 0, {"none": 0}), 1)
    assert running.is_nothing


def test_a_share_of_a_form_is_its_part_for_each_unit() -> None:
    assert share(Charge(2, 8), 3) == Amount({8: 6})
    assert share(Charge(2, 8), 0) is share(Charge(0, 1), 3) is NOTHING


def test_a_charge_comes_back_as_it_was_written_always_in_the_same_bytes() -> None:
    other = ChargeRecord("chat", "h100", Amount({3: 1}, 10, {"shared": 1}), "g1", 7, True, False)

    assert read_charge(RECORD.to_annotation()) == RECORD
    assert RECORD.to_annotation() == other.to_annotation()
    assert orjson.loads(RECORD.to_annotation())["milli"] == 334


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"tenant": None},
        {"parts": {"0": 1}},
        {"parts": {"x": 1}},
        {"parts": {"4": -1}},
        {"parts": {"4": 1.5}},
        {"parts": []},
        {"mib": True},
        {"mib": -1},
        {"counts": {"shared": "1"}},
        {"at": None},
        {"generation": 3},
    ],
)
def test_a_charge_that_is_not_of_our_making_is_none(change: dict[str, object]) -> None:
    plain = orjson.loads(RECORD.to_annotation()) | change

    assert read_charge(orjson.dumps(plain).decode()) is None


@pytest.mark.parametrize("text", [None, "", "[]", "3", "null", "{", "{}", '{"v":1}'])
def test_what_is_no_charge_at_all_is_none(text: str | None) -> None:
    assert read_charge(text) is None


def test_entries_of_zero_are_left_out() -> None:
    plain = orjson.loads(RECORD.to_annotation()) | {"parts": {"4": 0}, "counts": {"shared": 0}}
    record = read_charge(orjson.dumps(plain).decode())

    assert record is not None
    assert record.amount == Amount(mib=10)
