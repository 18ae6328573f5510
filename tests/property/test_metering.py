# SPDX-License-Identifier: Apache-2.0
"""The meter against an integral that is summed up millisecond by millisecond."""

from collections import Counter
from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from policies.quota.amount import Amount
from policies.quota.metering import Key, Meter, Use

KEYS = tuple(Key(tenant, "", mode) for tenant in ("chat", "lab") for mode in ("MIG", "TimeSlice"))
PARTS = st.dictionaries(st.sampled_from((1, 3, 7, 8)), st.integers(1, 5), max_size=3)
USES = st.dictionaries(st.sampled_from(KEYS), PARTS.map(Amount), max_size=2).map(
    lambda found: tuple(found.items())
)
STEPS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from("abc"), USES, st.booleans()), max_size=25
)


def milli(amounts: list[Amount]) -> int:
    """Return what shares cost that are rounded up once for each size."""
    counts: Counter[int] = Counter()
    for amount in amounts:
        counts.update(amount.parts)
    return sum(ceil(Fraction(1000 * count, size)) for size, count in counts.items())


@given(STEPS, st.integers(0, 40))
def test_the_meter_is_the_exact_integral_however_often_it_is_read(
    steps: list[tuple[int, str, Use, bool]], last: int
) -> None:
    now, meter, held = 1000, Meter(1000), dict[str, Use]()
    expected: Counter[Key] = Counter()
    found: Counter[Key] = Counter()
    for wait, uid, use, reads in [*steps, (last, "a", (), True)]:
        for key in KEYS:
            amounts = [amount for own in held.values() for k, amount in own if k == key]
            for _ in range(wait):
                expected[key] += milli(amounts)
        now += wait
        meter.put(uid, use, now)
        held[uid] = use
        if reads:
            found.update(meter.take(now))
    assert +found == +expected


@given(STEPS)
def test_nothing_is_metered_once_everything_has_ended(
    steps: list[tuple[int, str, Use, bool]],
) -> None:
    meter, now = Meter(0), 0
    for wait, uid, use, _ in steps:
        now += wait
        meter.put(uid, use, now)
    for uid in "abc":
        meter.put(uid, (), now)
    meter.take(now)
    assert meter.take(now + 1_000_000) == {}


@given(STEPS, st.integers(1, 10_000))
def test_a_clock_that_goes_back_meters_nothing_and_takes_nothing_back(
    steps: list[tuple[int, str, Use, bool]], back: int
) -> None:
    meter, now = Meter(0), 0
    for wait, uid, use, _ in steps:
        now += wait
        meter.put(uid, use, now)
    first = meter.take(now)
    assert all(micro > 0 for micro in first.values())
    assert meter.take(now - back) == {}
