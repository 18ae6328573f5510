# SPDX-License-Identifier: Apache-2.0
"""Typical pods are those that are many, and those that take much."""

from policies.placement.asks import Ask, DeviceAsk
from policies.placement.popularity import Popularity
from tests.support.builders import GPU, SHARED

ONE = Ask((DeviceAsk(GPU, 1),))
EIGHT = Ask((DeviceAsk(GPU, 8),))
SHARE = Ask((DeviceAsk(SHARED, 1),))


def test_the_most_popular_are_typical_until_enough_are_covered() -> None:
    seen = Popularity([(ONE, 1000)] * 96 + [(SHARE, 250)] * 4)
    assert [(t.ask, t.weight) for t in seen.typical()] == [(ONE, 96)]
    assert [t.ask for t in seen.typical(covered_percent=97)] == [ONE, SHARE]


def test_few_that_take_much_are_typical_too() -> None:
    seen = Popularity([(ONE, 1000)] * 97 + [(EIGHT, 8000)] * 3)
    assert [(t.ask, t.weight) for t in seen.typical()] == [(ONE, 97), (EIGHT, 3)]


def test_pods_that_state_memory_are_like_those_that_do_not() -> None:
    seen = Popularity([(Ask((DeviceAsk(GPU, 1, mib=mib),)), 1000) for mib in (None, 8, 16)])
    assert [(t.ask, t.weight) for t in seen.typical()] == [(ONE, 3)]


def test_pods_without_gpus_are_not_counted() -> None:
    assert Popularity([(Ask((), (("cpu", 1),)), 0)]).seen == 0


def test_nothing_is_typical_before_a_pod_was_seen() -> None:
    assert Popularity().typical() == ()


def test_what_is_no_longer_asked_fades() -> None:
    seen = Popularity([(ONE, 1000)] * 16_384)
    for _ in range(5 * 16_384):
        seen.see(SHARE, 250)
    assert seen.typical()[0].ask == SHARE
    assert seen.seen == 6 * 16_384


def test_ever_new_kinds_do_not_pile_up() -> None:
    seen = Popularity((Ask((DeviceAsk(GPU, n),)), 1) for n in range(1, 50_000))
    assert len(seen._counts) <= 2048
    assert len(seen.typical()) <= 256


def test_it_is_learnt_anew_when_pods_doubled_and_later_every_five_hundred() -> None:
    seen = Popularity()
    assert not seen.is_due(0)
    learnt = []
    at = 0
    for _ in range(2000):
        seen.see(ONE, 1000)
        if seen.is_due(at):
            at = seen.seen
            learnt.append(at)
    assert learnt == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1012, 1512]
