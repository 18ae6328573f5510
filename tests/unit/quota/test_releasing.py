# SPDX-License-Identifier: Apache-2.0
"""What becomes of a release whose write lands, conflicts, is refused, or whose outcome is lost."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from policies.model.labels import Expression, Operator
from policies.model.term import LeaseTerm
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from policies.quota.pods import QuotaPod
from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PastTermError,
    TimedOutError,
    UnavailableError,
)
from reconciler.kube.intents import Intent
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.resources import Target
from reconciler.quota.releasing import Release, Releaser, ReleaseSettings, _Sent
from reconciler.quota.writing import intent_of
from tests.support.quota_pods import waiting_pod
from tests.support.running import running
from tests.support.waiting import until

QUICK = Backoff(0.005, 0.01)
TERM = LeaseTerm("sluice/sluice", "u", "2026-01-02T03:04:05Z", 4)
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
    """Answers each write with the next of `answers`; after the last, as a good server would.

    `raw` is what it has of the pod; one that is voided becomes newer.
    """

    def __init__(self, *answers: ApiError | None) -> None:
        self.answers = list(answers)
        self.bodies: list[Any] = []
        self.raw: dict[str, Any] = {}
        self.voids: list[Any] = []
        self.void_error: ApiError | None = None
        self.on_write: Callable[[], object] = lambda: None

    async def get(self, target: Target) -> Mapping[str, object]:
        if not self.raw:
            raise NotFoundError("no such pod", status=404)
        return self.raw

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        sent: Any = body
        if "spec" not in sent:
            return self._void(sent)
        self.bodies.append(sent)
        self.on_write()
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        return self.hold(target.name, int(sent["metadata"]["resourceVersion"]) + 1)

    def hold(self, name: str, version: int) -> Mapping[str, object]:
        uid = name.removeprefix("pod-")
        self.raw = {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}}
        return self.raw

    def _void(self, sent: Any) -> Mapping[str, object]:
        self.voids.append(sent)
        if self.void_error is not None:
            raise self.void_error
        return self.hold(self.raw["metadata"]["name"], int(sent["metadata"]["resourceVersion"]) + 1)


class Outcome:
    """Tells the releaser of what it was shown, as a picture of the cluster does."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.stands_now = True
        self.seen: Callable[[str, str], bool] = lambda _uid, _version: False
        self.waits: list[float] = []

    def stands(self, release: Release) -> bool:
        return self.stands_now

    def looked(self, raw: Mapping[str, Any]) -> None:
        self.seen(raw["metadata"]["uid"], raw["metadata"]["resourceVersion"])

    def landed(self, release: Release) -> None:
        self.told.append(("landed", release.pod.uid))

    def withdrawn(self, pod: QuotaPod) -> None:
        self.told.append(("withdrawn", pod.uid))

    def refused(self, pod: QuotaPod, error: ApiError, seconds: float) -> None:
        self.told.append(("refused", pod.uid))
        self.waits.append(seconds)


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
        self.term: LeaseTerm | None = None
        self.releaser = Releaser(
            self.server,
            self.outstanding,
            self.outcome,
            lambda: self.is_held,
            ReleaseSettings(
                pod_backoff=QUICK,
                server_backoff=QUICK,
                identity="leader",
                term=lambda: self.term,
            ),
        )
        self.outcome.seen = self.releaser.seen


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


async def test_a_release_names_the_term_as_it_is_when_it_is_sent() -> None:
    bench = Bench(PastTermError("term 4 is over", status=403))
    bench.term = TERM
    bench.server.on_write = lambda: setattr(bench, "term", replace(TERM, transitions=5))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bench.outcome.told == [("refused", "a")])
        assert "a" not in bench.outstanding
        assert bench.releaser.under_way == 0
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bench.outcome.told[1:] == [("landed", "a")])
    named = [
        body["metadata"]["annotations"]["state.sluice.dev/term"] for body in bench.server.bodies
    ]
    assert named == [TERM.to_annotation(), replace(TERM, transitions=5).to_annotation()]
    assert not bench.server.voids


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


async def test_a_refusal_after_an_unknown_outcome_settles_once_no_write_can_land_any_more() -> None:
    lost, denied = TimedOutError("lost", may_have_happened=True), ForbiddenError("no", status=403)
    bench = Bench(lost, denied)
    bench.server.hold("pod-a", 5)
    bench.server.void_error = UnavailableError("unwell", status=500)
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: len(bench.server.voids) >= 2)
        assert bench.outcome.told == []
        assert not bench.releaser.seen("a", "5")
        assert "a" in bench.outstanding
        bench.server.void_error = None
        await until(lambda: bool(bench.outcome.told))
    assert bench.outcome.told == [("refused", "a")]
    assert "a" not in bench.outstanding
    assert len(bench.server.bodies) == 2


async def test_a_write_that_has_landed_unseen_is_found_by_looking() -> None:
    lost, denied = TimedOutError("lost", may_have_happened=True), ForbiddenError("no", status=403)
    bench = Bench(lost, denied)
    bench.server.hold("pod-a", 6)
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: not bench.releaser.under_way and "a" not in bench.outstanding)
    assert bench.server.voids == []
    assert bench.outcome.told == []


async def test_a_conflict_is_settled_by_the_newer_pod_that_its_watch_shows() -> None:
    bench = Bench(ConflictError("stale", status=409))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: bool(bench.server.bodies))
        assert "a" in bench.outstanding
        assert not bench.releaser.seen("a", "5")
        assert bench.releaser.seen("a", "6")
        assert "a" not in bench.outstanding
        assert bench.releaser.under_way == 0
    assert bench.outcome.told == []


async def test_a_conflict_that_its_watch_does_not_show_is_settled_by_looking() -> None:
    bench = Bench(ConflictError("stale", status=409))
    bench.server.hold("pod-a", 7)
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: "a" not in bench.outstanding)
    assert len(bench.server.bodies) == 1
    assert bench.server.voids == []


async def test_who_denies_with_the_status_of_a_conflict_is_asked_less_and_less_often() -> None:
    bench = Bench(*[ConflictError("denied the request", status=409)] * 4)
    bench.releaser._settings = replace(bench.releaser._settings, pod_backoff=Backoff(0.01, 10.0))
    bench.server.hold("pod-a", 5)
    async with running(bench.releaser.run()):
        for count in range(1, 5):
            version = bench.server.raw["metadata"]["resourceVersion"]
            await bench.releaser.hand_in([Planned(waiting_pod("a", version=version))])
            await until(lambda count=count: len(bench.outcome.told) == count)  # type: ignore[misc]
    assert bench.outcome.told == [("refused", "a")] * 4
    assert bench.outcome.waits[3] >= 2 * bench.outcome.waits[0]
    assert len(bench.outstanding) == 0


async def test_an_answer_that_is_not_the_pod_settles_nothing_before_it_was_looked_at() -> None:
    bench = Bench()
    outstanding: list[bool] = []
    hold = bench.server.hold

    def other(name: str, version: int) -> Mapping[str, object]:
        bench.server.hold = hold  # type: ignore[method-assign]  # once
        hold(name, version)
        return {"kind": "Status", "status": "Success"}

    bench.server.hold = other  # type: ignore[method-assign]

    def seen(uid: str, version: str) -> bool:
        outstanding.append(uid in bench.outstanding)
        return bench.releaser.seen(uid, version)

    bench.outcome.seen = seen
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: "a" not in bench.outstanding)
    assert outstanding == [True]


async def test_a_refusal_of_a_pod_that_was_seen_newer_meanwhile_is_nothing_any_more() -> None:
    bench = Bench(ForbiddenError("no", status=403))
    newer = Planned(waiting_pod("a", version="6"))
    handed: list[asyncio.Task[int]] = []

    def change() -> None:
        bench.server.on_write = lambda: None
        assert bench.releaser.seen("a", "6")
        bench.releaser._sent["a"] = _Sent(newer)
        handed.append(asyncio.ensure_future(bench.outstanding.declare([intent_of(newer)])))  # type: ignore[arg-type]

    bench.server.on_write = change
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: bool(handed) and handed[0].done())
        for _ in range(10):
            await asyncio.sleep(0)
        assert "a" in bench.outstanding
        assert bench.releaser.under_way == 1
    assert bench.outcome.told == []


async def test_a_clean_refusal_settles_and_is_told_with_a_growing_wait() -> None:
    bench = Bench(ForbiddenError("a webhook of others says no", status=403))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bool(bench.outcome.told))
    assert bench.outcome.told == [("refused", "a")]
    assert "a" not in bench.outstanding


async def test_a_pod_that_is_not_found_is_settled_once_its_end_is_seen() -> None:
    bench = Bench(NotFoundError("no such pod", status=404))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bool(bench.server.bodies))
        for _ in range(20):
            await asyncio.sleep(0)
        assert "a" in bench.outstanding
        bench.releaser.seen_gone("a")
    assert "a" not in bench.outstanding
    assert bench.releaser.under_way == 0


async def test_a_release_that_would_not_be_decided_so_today_is_withdrawn_unsent() -> None:
    bench = Bench()
    bench.outcome.stands_now = False
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        await until(lambda: bool(bench.outcome.told))
    assert bench.outcome.told == [("withdrawn", "a")]
    assert "a" not in bench.outstanding
    assert bench.server.bodies == []


async def test_one_that_may_have_landed_is_made_sure_of_before_it_is_withdrawn() -> None:
    bench = Bench(TimedOutError("lost", may_have_happened=True))
    bench.server.on_write = lambda: setattr(bench.outcome, "stands_now", False)
    bench.server.hold("pod-a", 5)
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a", version="5"))])
        await until(lambda: "a" not in bench.outstanding)
    assert len(bench.server.bodies) == len(bench.server.voids) == 1


async def test_those_that_rest_after_a_failure_leave_room_for_others() -> None:
    bench = Bench(*[TimedOutError("lost", may_have_happened=True)] * 3)
    bench.releaser._settings = replace(bench.releaser._settings, pod_backoff=Backoff(60.0, 60.0))
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod(uid)) for uid in "abc"])
        await until(lambda: len(bench.server.bodies) == 3)
        await until(lambda: bench.releaser.under_way == 0)
        assert len(bench.outstanding) == 3


async def test_more_than_the_lease_holds_is_left_to_the_next_plan() -> None:
    bench = Bench()
    charge = replace(CHARGE, generation="x" * 2000)
    planned = [Planned(waiting_pod(str(n)), charge) for n in range(200)]
    bench.is_held = False
    count = await bench.releaser.hand_in(planned)
    assert 50 < count < 200
    assert len(bench.outstanding) == count
    assert await bench.releaser.hand_in(planned[count:]) == 0
    assert bench.outcome.told == []


async def test_what_no_lease_could_hold_is_refused_and_others_go_on() -> None:
    bench = Bench()
    charge = replace(CHARGE, generation="x" * 300_000)
    assert await bench.releaser.hand_in([Planned(waiting_pod("a"), charge)]) == 0
    assert bench.outcome.told == [("refused", "a")]


async def test_one_that_is_due_while_the_lease_is_late_is_sent_once_it_is_held_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.quota.releasing._NOT_HELD_SECONDS", 0.01)
    bench = Bench()
    bench.is_held = False
    async with running(bench.releaser.run()):
        await bench.releaser.hand_in([Planned(waiting_pod("a"))])
        for _ in range(20):
            await asyncio.sleep(0)
        bench.is_held = True
        await until(lambda: bool(bench.outcome.told))
    assert bench.outcome.told == [("landed", "a")]


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
        "metadata": {"uid": "a", "resourceVersion": "5"},
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
