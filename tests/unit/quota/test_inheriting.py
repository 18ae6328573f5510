# SPDX-License-Identifier: Apache-2.0
"""A past leader's writes count until they have landed, or can no longer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from policies.quota.pods import Phase, QuotaPod
from reconciler.kube.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from reconciler.kube.intents import Intent, IntentKind
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import Target
from reconciler.kube.store import Key
from reconciler.quota.inheriting import Inheritance
from tests.support.quota_pods import waiting_pod

CHARGE = ChargeRecord("chat", "", Amount({1: 1}), "abcd", 1000)


def intent(uid: str, version: str = "5") -> Intent:
    charge = CHARGE.to_annotation()
    return Intent(IntentKind.RELEASE, "chat", f"pod-{uid}", uid, version, charge)


class Server:
    def __init__(self) -> None:
        self.pods: dict[str, Any] = {}
        self.faults: list[ApiError] = []
        self.written: list[Any] = []

    def hold(self, uid: str, version: str) -> None:
        self.pods[f"pod-{uid}"] = {"metadata": {"uid": uid, "resourceVersion": version}}

    async def get(self, target: Target) -> Mapping[str, object]:
        if self.faults:
            raise self.faults.pop(0)
        if target.name not in self.pods:
            raise NotFoundError("no such pod", status=404)
        found: Mapping[str, object] = self.pods[target.name]
        return found

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        self.written.append(body)
        pod = self.pods[target.name]
        sent: Any = body["metadata"]
        version, before = sent["resourceVersion"], pod["metadata"].get("annotations", {})
        if pod["metadata"]["resourceVersion"] != version:
            raise ConflictError("stale", status=409)
        after = before | sent["annotations"]
        if after != before:  # a patch that changes nothing makes no new version
            self.hold(pod["metadata"]["uid"], str(int(version) + 1))
            self.pods[target.name]["metadata"]["annotations"] = after
        changed: Mapping[str, object] = self.pods[target.name]
        return changed


class Picture:
    def __init__(self) -> None:
        self.absorbed: list[Any] = []
        self.shown: dict[str, QuotaPod] = {}

    def pod(self, key: Key) -> QuotaPod | None:
        return self.shown.get(key.name)

    def absorb(self, raw: Mapping[str, object]) -> None:
        self.absorbed.append(raw)


class Charges:
    def __init__(self) -> None:
        self.counted: dict[str, ChargeRecord] = {}

    def charge_intent(self, uid: str, charge: ChargeRecord) -> None:
        self.counted[uid] = charge

    def settle(self, uid: str) -> None:
        self.counted.pop(uid, None)


class Lease:
    async def declare(self, intents: Sequence[Intent]) -> None:
        pass


class Heir:
    def __init__(self, *intents: Intent) -> None:
        self.server, self.picture, self.charges = Server(), Picture(), Charges()
        self.outstanding = Outstanding(Lease(), intents)
        self.slept: list[float] = []
        self.inheritance = Inheritance(
            self.server,
            self.picture,
            self.charges,
            self.outstanding,
            "heir",
            Runtime(uniform=lambda low, _high: low, sleep=self.sleep),
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_everything_inherited_counts_as_charged_before_anything_is_settled() -> None:
    heir = Heir(intent("a"), intent("b"))
    heir.inheritance.count()
    assert heir.charges.counted == {"a": CHARGE, "b": CHARGE}


async def test_a_pod_that_is_as_the_write_expects_is_changed_so_that_it_cannot_land() -> None:
    heir = Heir(intent("a", "5"))
    heir.server.hold("a", "5")
    heir.inheritance.count()
    await heir.inheritance.settle()
    (written,) = heir.server.written
    assert written["metadata"]["annotations"].keys() == {"state.sluice.dev/voided"}
    assert heir.server.pods["pod-a"]["metadata"]["resourceVersion"] == "6"
    assert heir.charges.counted == {}
    assert len(heir.outstanding) == 0


async def test_a_pod_that_the_same_leader_has_voided_before_is_changed_again() -> None:
    heir = Heir(intent("a", "5"))
    heir.server.hold("a", "5")
    await heir.inheritance.settle()
    again = Heir(intent("a", "6"))
    again.server.pods = heir.server.pods
    await again.inheritance.settle()
    assert heir.server.pods["pod-a"]["metadata"]["resourceVersion"] == "7"


async def test_a_pod_that_has_moved_on_is_taken_up_and_left_alone() -> None:
    heir = Heir(intent("a", "5"))
    heir.server.hold("a", "9")
    await heir.inheritance.settle()
    assert heir.server.written == []
    assert heir.picture.absorbed == [heir.server.pods["pod-a"]]
    assert len(heir.outstanding) == 0


async def test_a_pod_that_is_gone_or_was_made_again_settles() -> None:
    heir = Heir(intent("gone"), intent("old"))
    heir.server.pods["pod-old"] = {"metadata": {"uid": "new", "resourceVersion": "5"}}
    await heir.inheritance.settle()
    assert heir.server.written == []
    assert len(heir.outstanding) == 0


async def test_a_pod_that_is_not_found_counts_until_its_watch_shows_it_no_more() -> None:
    heir = Heir(intent("a"))
    heir.picture.shown["pod-a"] = waiting_pod("a", version="5")
    heir.inheritance.count()
    counted: list[bool] = []

    async def watching(_seconds: float) -> None:
        counted.append("a" in heir.charges.counted)
        if len(counted) == 3:
            del heir.picture.shown["pod-a"]

    heir.inheritance._runtime = Runtime(uniform=lambda low, _: low, sleep=watching)
    await heir.inheritance.settle()
    assert counted == [True] * 3
    assert len(heir.outstanding) == 0


async def test_a_release_whose_charge_cannot_be_read_is_settled_before_anything_is_decided() -> (
    None
):
    newer = replace(intent("b"), charge='{"v":2}')
    heir = Heir(intent("a"), newer)
    heir.server.hold("a", "5")
    heir.server.hold("b", "5")
    heir.inheritance.count()
    await heir.inheritance.settle_uncounted()
    assert heir.server.pods["pod-b"]["metadata"]["resourceVersion"] == "6"
    assert heir.server.pods["pod-a"]["metadata"]["resourceVersion"] == "5"
    assert list(heir.outstanding.intents) == ["a"]


@pytest.mark.parametrize("fault", [UnavailableError("down"), ConflictError("moved", status=409)])
async def test_what_fails_is_tried_until_it_is_known_and_counts_meanwhile(fault: ApiError) -> None:
    heir = Heir(intent("a", "5"))
    heir.server.hold("a", "5")
    heir.server.faults = [fault] * 3
    heir.inheritance.count()
    counted: list[bool] = []
    sleep = heir.sleep

    async def watching(seconds: float) -> None:
        counted.append("a" in heir.charges.counted)
        await sleep(seconds)

    heir.inheritance._runtime = Runtime(uniform=lambda low, _: low, sleep=watching)
    await heir.inheritance.settle()
    assert counted == [True] * 3
    assert len(heir.outstanding) == 0


async def test_where_the_list_is_lost_every_pod_that_could_be_written_to_is_changed() -> None:
    heir = Heir()
    pods = [
        waiting_pod("a", version="5"),
        waiting_pod("running", version="5", phase=Phase.LIVE),
    ]
    for pod in pods:
        heir.server.hold(pod.uid, "5")
    await heir.inheritance.void_everything(pods)
    assert [pod["metadata"]["resourceVersion"] for pod in heir.server.pods.values()] == ["6", "5"]
