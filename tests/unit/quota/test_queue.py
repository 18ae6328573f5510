# SPDX-License-Identifier: Apache-2.0
"""The order and pace in which objects are looked at."""

from reconciler.quota.queue import WorkQueue


def test_keys_come_once_in_the_order_they_were_added() -> None:
    queue = WorkQueue[str]()
    for key in ("b", "a", "b"):
        queue.add(key)
    assert queue.seconds_to_next(0) == 0
    assert queue.take(0) == ["b", "a"]
    assert queue.take(0) == []
    assert queue.seconds_to_next(0) is None


def test_a_key_that_is_taken_is_not_given_out_twice_but_again_afterwards() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.take(0)
    queue.add("a")
    assert queue.take(0) == []
    queue.finish("a")
    assert queue.take(0) == ["a"]
    queue.finish("a")
    assert queue.take(0) == []


def test_a_key_that_backs_off_waits_whatever_happens_to_it() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.take(0)
    queue.add("a")
    queue.retry("a", due=5.0)
    queue.add("a")
    assert queue.take(4.9) == []
    assert queue.seconds_to_next(4.0) == 1.0
    assert queue.take(5.0) == ["a"]
    queue.finish("a")
    assert queue.take(9.0) == []


def test_failures_count_until_a_key_is_forgotten() -> None:
    queue = WorkQueue[str]()
    assert [queue.count_failure("a") for _ in range(3)] == [1, 2, 3]
    queue.forget("a")
    assert queue.count_failure("a") == 1


def test_a_forgotten_key_does_not_come_back_by_itself() -> None:
    queue = WorkQueue[str]()
    for key in ("ready", "waiting"):
        queue.add(key)
    queue.take(0)
    queue.finish("ready")
    queue.add("ready")
    queue.retry("waiting", due=5.0)
    queue.forget("ready")
    queue.forget("waiting")
    assert queue.seconds_to_next(0) is None
    assert queue.take(9.0) == []
    queue.add("waiting")
    assert queue.take(9.0) == ["waiting"]


def test_a_later_retry_replaces_an_earlier_one() -> None:
    queue = WorkQueue[str]()
    queue.retry("a", due=5.0)
    queue.retry("a", due=9.0)
    assert queue.take(6.0) == []
    assert queue.seconds_to_next(6.0) == 3.0
    assert queue.take(9.0) == ["a"]
