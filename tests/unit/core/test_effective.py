# SPDX-License-Identifier: Apache-2.0
"""What a pod takes from its node, as the scheduler counts it."""

import pytest

from policies.pod.asked import effective_counts
from policies.pod.effective import effective
from policies.pod.view import ContainerKind

APP, INIT = ContainerKind.APP, ContainerKind.INIT
SIDECAR, EPHEMERAL = ContainerKind.SIDECAR, ContainerKind.EPHEMERAL

Listed = list[tuple[ContainerKind, dict[str, int]]]

CASES: list[tuple[str, Listed, dict[str, int]]] = [
    ("nothing", [], {}),
    ("app containers add up", [(APP, {"gpu": 1}), (APP, {"gpu": 2})], {"gpu": 3}),
    ("init containers run one by one", [(INIT, {"gpu": 2}), (INIT, {"gpu": 3})], {"gpu": 3}),
    ("the larger counts", [(INIT, {"gpu": 4}), (APP, {"gpu": 1}), (APP, {"gpu": 2})], {"gpu": 4}),
    ("an init container without GPUs", [(INIT, {}), (APP, {"gpu": 2})], {"gpu": 2}),
    ("sidecars go on running", [(SIDECAR, {"gpu": 1}), (APP, {"gpu": 2})], {"gpu": 3}),
    ("sidecars before", [(SIDECAR, {"gpu": 1}), (INIT, {"gpu": 3}), (APP, {"gpu": 1})], {"gpu": 4}),
    ("sidecars after", [(INIT, {"gpu": 3}), (SIDECAR, {"gpu": 1}), (APP, {"gpu": 1})], {"gpu": 3}),
    ("each name by itself", [(INIT, {"a": 2}), (APP, {"a": 1, "b": 1})], {"a": 2, "b": 1}),
    ("debug containers take nothing", [(APP, {"gpu": 1}), (EPHEMERAL, {"gpu": 9})], {"gpu": 1}),
    ("only a debug container", [(EPHEMERAL, {"gpu": 9})], {}),
    ("zeros are left out", [(APP, {"gpu": 0, "mig": 1})], {"mig": 1}),
    ("zeros of two containers", [(APP, {"gpu": 0}), (APP, {"mig": 1})], {"mig": 1}),
]


@pytest.mark.parametrize(
    ("listed", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_a_pods_request_is_what_the_scheduler_counts(
    listed: Listed, expected: dict[str, int]
) -> None:
    assert effective(listed) == expected
    assert effective_counts(listed) == expected


def test_names_come_in_order() -> None:
    assert list(effective([(APP, {"b": 1, "a": 1})])) == ["a", "b"]
    assert list(effective_counts([(APP, {"b": 1, "a": 1})])) == ["a", "b"]
