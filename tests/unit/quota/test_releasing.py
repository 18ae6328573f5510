# SPDX-License-Identifier: Apache-2.0
"""What becomes of a release whose write lands, conflicts, is refused, or whose outcome is lost."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from policies.model.labels import Expression, Operator
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from policies.quota.pods import QuotaPod
from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TimedOutError,
    UnavailableError,
)
from reconciler.kube.intents import Intent
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.resources import Target
from reconciler.quota.releasing import Release, Releaser, ReleaseSettings
from tests.support.quota_pods import waiting_pod
from tests.support.running import running
from tests.support.waiting import until

QUICK = Backoff(0.005, 0.01)
CHARGE = ChargeRecord("chat", "", Amount({1: 1}), "abcd", 1000)


@dataclass(frozen=True)
class Pinned:
    node_selector: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Planned:
    pod: QuotaPod
    charge: ChargeRecord = CHARGE
    pins: Pinned = field(default_factory=Pinned)


class Server:
    """Answers each write with the next of `answers`; after the last, as a good server would."""

    def __init__(self, *answers: ApiError | None) -> None:
        self.answers = list(answers)
        self.bodies: list[Any] = []
        self.raw: dict[str, Any] = {}
        self.on_write: Callable[[], object] = lambda: None

    async def get(self, target: Target) -> Mapping[str, object]:
        return self.raw

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        self.bodies.append(body)
        self.on_write()
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        return {"metadata": {"name": target.name}}


class Outcome:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def landed(self, release: Release, raw: Mapping[str, object]) -> None:
        self.told.append(("landed", release.pod.uid))

    def refused(self, pod: QuotaPod, error: ApiError, seconds: float) -> None:
        self.told.append(("refused", pod.uid))

    def gone(self, pod: QuotaPod) -> None:
        self.told.append(("gone", pod.uid))


class Lease:
    def __init__(self) -> None:
        self.declared: list[list[str]] = []

    async def declare(self, intents: Sequence[Intent]) -> None:
        self.declared.append([intent.uid for intent in intents])


class Bench:
    def __init__(self, *answers: ApiError | None) -> None:
        self.server = Server(*answers)
        self.lease = Lease()
        self.outstanding = Outstanding(self.lease)
        self.outcome = Outcome()
        self.is_held = True
        self.releaser = Releaser(
            self.server,
            self.outstanding,
            self.outcome,
            lambda: self.is_held,
            ReleaseSettings(pod_backoff=QUICK, server_backoff=QUICK),
        )


async def test_a_release_is_declared_before_it_is_sent_and_settled_when_it_has_landed() -> None:
    bench = Bench()
    seen: list[list[list[str]]] = []
    bench.server.on_write = lambda: seen.append(list(bench.lease.declared))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bool(bench.outcome.told))
    assert seen == [[["a"]]]
    assert bench.outcome.told == [("landed", "a")]
    assert "a" not in bench.outstanding
    assert bench.releaser.under_way == 0


async def test_the_write_charges_takes_the_gate_off_and_names_the_version_it_was_made_for() -> None:
    bench = Bench()
    pod = waiting_pod("a", version="41", reason="OverCeiling: x")
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(pod, pins=Pinned({"pool": "a100"}))])
        await until(lambda: bool(bench.outcome.told))
    assert bench.server.bodies == [
        {
            "metadata": {
                "resourceVersion": "41",
                "annotations": {
                    "state.sluice.dev/charge": CHARGE.to_annotation(),
                    "state.sluice.dev/reason": None,
                },
            },
            "spec": {"schedulingGates": None, "nodeSelector": {"pool": "a100"}},
        }
    ]


@pytest.mark.parametrize(
    "error",
    [
        TimedOutError("no answer", may_have_happened=True),
        UnavailableError("cut off", may_have_happened=True),
        UnavailableError("refused to connect"),
    ],
)
async def test_a_write_whose_outcome_is_unknown_stays_declared_and_is_sent_again(
    error: ApiError,
) -> None:
    bench = Bench(error)
    open_at_second: list[bool] = []
    bench.server.on_write = lambda: open_at_second.append("a" in bench.outstanding)
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bool(bench.outcome.told))
    assert open_at_second == [True, True]
    assert bench.outcome.told == [("landed", "a")]


async def test_a_refusal_after_an_unknown_outcome_settles_nothing_until_the_pod_is_seen() -> None:
    lost, denied = TimedOutError("lost", may_have_happened=True), ForbiddenError("no", status=403)
    bench = Bench(lost, denied, denied)
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: len(bench.server.bodies) >= 3)
        assert ("refused", "a") not in bench.outcome.told
        assert not bench.releaser.seen("a", "5")
        assert "a" in bench.outstanding


async def test_a_conflict_is_settled_by_the_newer_pod_that_its_watch_shows() -> None:
    bench = Bench(*[ConflictError("stale", status=409)] * 100)
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: len(bench.server.bodies) >= 2)
        assert "a" in bench.outstanding
        assert not bench.releaser.seen("a", "5")
        assert bench.releaser.seen("a", "6")
        assert "a" not in bench.outstanding
        assert bench.releaser.under_way == 0
    assert bench.outcome.told == []


async def test_a_clean_refusal_settles_and_is_told_with_a_growing_wait() -> None:
    bench = Bench(ForbiddenError("a webhook of others says no", status=403))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bool(bench.outcome.told))
    assert bench.outcome.told == [("refused", "a")]
    assert "a" not in bench.outstanding


async def test_a_pod_that_is_gone_is_settled_and_told() -> None:
    bench = Bench(NotFoundError("no such pod", status=404))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bool(bench.outcome.told))
    assert bench.outcome.told == [("gone", "a")]
    assert "a" not in bench.outstanding


async def test_nothing_is_sent_once_the_leadership_is_over() -> None:
    bench = Bench()
    bench.is_held = False
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        for _ in range(20):
            await asyncio.sleep(0)
    assert bench.server.bodies == []
    assert "a" in bench.outstanding


async def test_a_pin_by_affinity_is_written_into_every_term_of_the_pod_as_it_is() -> None:
    bench = Bench()
    own = {"key": "zone", "operator": "In", "values": ["a"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    bench.server.raw = {
        "metadata": {"resourceVersion": "5"},
        "spec": {
            "schedulingGates": [{"name": "sluice.dev/quota"}],
            "affinity": {
                "nodeAffinity": {
                    required: {"nodeSelectorTerms": [{"matchExpressions": [own]}, {}]}
                },
                "podAffinity": {"kept": True},
            },
        },
    }
    pin = Expression("pool", Operator.NOT_IN, ("a100",))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in(
            [Planned(waiting_pod("a", version="5"), pins=Pinned(expressions=(pin,)))]
        )
        await until(lambda: bool(bench.outcome.told))
    terms = bench.server.bodies[0]["spec"]["affinity"]["nodeAffinity"][required]
    assert terms == {
        "nodeSelectorTerms": [
            {"matchExpressions": [own, pin.to_json()]},
            {},  # it selects no node, and must go on selecting none
        ]
    }
