# SPDX-License-Identifier: Apache-2.0
"""Gates that are taken off by force: which pods, which write, and what is tried again."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from click.testing import CliRunner

import sluice
from reconciler.cli.release.acting import Identity, break_glass
from reconciler.cli.release.actuate import Releaser, Result
from reconciler.cli.release.pods import Force, GatedPod, by_namespace, force_patch, gated_pod
from reconciler.cli.release.printing import announcement, conclusion, failures
from reconciler.cli.release.run import Orders, Tally, release_all
from reconciler.cli.terminal import BAD_INPUT, CommandError
from reconciler.kube.client import Page
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import Selection, Target
from reconciler.runtime.audit_eviction import Outcome
from reconciler.runtime.audit_release import ForcedReleaseEntry, Released, to_line

NOW: Final = datetime(2031, 5, 17, 12, 0, 0, 250_000, UTC)
GATE: Final = "sluice.dev/quota"
POD: Final = GatedPod("chat", "a", "uid-a", "7", (), "Ceiling: full")


def raw_pod(*gates: Any, name: str = "a", version: str = "7", **metadata: Any) -> dict[str, Any]:
    found = {"name": name, "namespace": "chat", "uid": f"uid-{name}", "resourceVersion": version}
    spec: dict[str, Any] = {"schedulingGates": [{"name": each} for each in gates]} if gates else {}
    return {"metadata": {**found, **metadata}, "spec": spec}


def test_only_pods_with_the_gate_are_meant() -> None:
    annotations = {"state.sluice.dev/reason": "Ceiling: full"}
    assert gated_pod(raw_pod(GATE, annotations=annotations)) == POD
    assert gated_pod(raw_pod("example.com/other")) is None
    assert gated_pod(raw_pod()) is None


@pytest.mark.parametrize("gates", [None, "x", 3, [None], [{"name": 3}], [["name"]], {"name": GATE}])
def test_what_is_no_list_of_gates_is_no_gate(gates: object) -> None:
    assert gated_pod({"metadata": {"name": "a"}, "spec": {"schedulingGates": gates}}) is None


def test_the_gate_goes_with_the_reason_and_the_pod_says_by_whom() -> None:
    note = Force("admin", "INC-1").note(NOW)
    assert force_patch(POD, note) == {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {
                "state.sluice.dev/forced": "by admin at 2031-05-17T12:00:00Z: INC-1",
                "state.sluice.dev/reason": None,
            },
        },
        "spec": {"schedulingGates": None},
    }


def test_gates_of_others_stay() -> None:
    found = gated_pod(raw_pod("example.com/a", GATE, "example.com/b"))
    assert found is not None
    patch: Any = force_patch(found, "x")
    assert patch["spec"]["schedulingGates"] == [
        {"name": "example.com/a"},
        {"name": "example.com/b"},
    ]
    assert "state.sluice.dev/reason" not in patch["metadata"]["annotations"]


def test_what_a_pod_says_is_bounded() -> None:
    assert len(Force("admin", "x" * 9000).note(NOW)) == 512


class Server:
    """Answers writes from a script; pods are found as they are in `pods`."""

    def __init__(self, *answers: ApiError | None) -> None:
        self.answers = list(answers)
        self.pods: dict[str, dict[str, Any]] = {}
        self.versions: list[str] = []
        self.dry_runs: list[bool] = []
        self.at_once = self.most_at_once = 0

    async def get(self, target: Target) -> Mapping[str, object]:
        if target.name not in self.pods:
            raise NotFoundError("gone", status=404)
        return self.pods[target.name]

    async def patch_merge(
        self, target: Target, body: Any, *, dry_run: bool = False
    ) -> Mapping[str, object]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.versions.append(body["metadata"]["resourceVersion"])
        self.dry_runs.append(dry_run)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        return {}


class Waits:
    """How long was waited."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def runtime(self) -> Runtime:
        return Runtime(uniform=lambda _, most: most, sleep=self.sleep, wall_clock=lambda: NOW)


async def released(server: Server, *pods: GatedPod, waits: Waits | None = None) -> list[Result]:
    results: list[Result] = []
    releaser = Releaser(server, Force("admin"), (waits or Waits()).runtime())
    await releaser.release(pods or (POD,), results.append)
    return results


async def test_a_pod_is_written_as_it_was_seen() -> None:
    server = Server()
    (result,) = await released(server)
    assert (result.outcome, server.versions) == (Outcome.DONE, ["7"])
    assert result.is_done
    assert not result.is_left


async def test_a_pod_that_has_changed_is_looked_at_again() -> None:
    server = Server(ConflictError("changed", status=409))
    server.pods["a"] = raw_pod(GATE, version="8")
    (result,) = await released(server)
    assert result.outcome is Outcome.DONE
    assert server.versions == ["7", "8"]


@pytest.mark.parametrize(
    "now", [raw_pod(), raw_pod("example.com/a"), raw_pod(GATE, uid="another"), None]
)
async def test_a_pod_that_needs_it_no_more_is_left_alone(now: dict[str, Any] | None) -> None:
    server = Server(ConflictError("changed", status=409))
    if now is not None:
        server.pods["a"] = now
    (result,) = await released(server)
    assert result.outcome is Outcome.STALE
    assert server.versions == ["7"]
    assert not result.is_left


async def test_what_is_refused_is_told_and_not_tried_again() -> None:
    server = Server(ForbiddenError("quota exceeded", status=403))
    (result,) = await released(server)
    assert (result.outcome, result.message) == (Outcome.REFUSED, "quota exceeded")
    assert result.is_left
    assert len(server.versions) == 1


async def test_a_busy_server_is_given_the_time_that_it_asks_for() -> None:
    server, waits = Server(TooManyRequestsError("slow", retry_after_seconds=3.0)), Waits()
    server.pods["a"] = raw_pod(GATE)
    (result,) = await released(server, waits=waits)
    assert result.outcome is Outcome.DONE
    assert waits.seconds == [3.0]


async def test_a_webhook_that_never_answers_ends_as_a_refusal_after_some_tries() -> None:
    error = UnavailableError('failed calling webhook "x"', status=500)
    server, waits = Server(*[error] * 9), Waits()
    server.pods["a"] = raw_pod(GATE)
    (result,) = await released(server, waits=waits)
    assert (result.outcome, result.message) == (Outcome.REFUSED, 'failed calling webhook "x"')
    assert len(server.versions) == 6
    assert waits.seconds == sorted(waits.seconds)


async def test_a_write_without_an_answer_counts_as_done_once_the_gate_is_off() -> None:
    server = Server(UnavailableError("cut off", may_have_happened=True))
    server.pods["a"] = raw_pod()
    (result,) = await released(server)
    assert result.outcome is Outcome.DONE


async def test_a_write_that_never_gets_an_answer_is_unknown() -> None:
    server = Server(*[UnavailableError("cut off", may_have_happened=True)] * 9)
    server.pods["a"] = raw_pod(GATE)
    (result,) = await released(server)
    assert result.outcome is Outcome.UNKNOWN
    assert result.is_left


async def test_many_pods_are_written_a_few_at_once_and_each_is_told() -> None:
    server = Server()
    pods = [replace(POD, name=f"p{number}", uid=f"u{number}") for number in range(100)]
    results = await released(server, *pods)
    assert sorted(result.pod.name for result in results) == sorted(pod.name for pod in pods)
    assert server.most_at_once == 16


async def test_a_dry_run_is_one_for_the_server() -> None:
    server = Server()
    results: list[Result] = []
    releaser = Releaser(server, Force("admin"), Waits().runtime(), dry_run=True)
    await releaser.release([POD], results.append)
    assert server.dry_runs == [True]


def test_one_acts_as_oneself_in_one_group_more() -> None:
    me = Identity("admin", ("system:masters", "system:authenticated"))
    acting = break_glass(me, "").impersonation
    assert acting is not None
    assert acting.user == "admin"
    assert acting.groups == ("system:masters", "sluice.dev:break-glass")


def test_or_as_somebody_else_without_ones_own_groups() -> None:
    me = Identity("on-call", ("people", "system:authenticated"))
    acting = break_glass(me, "system:serviceaccount:sluice:sluice").impersonation
    assert acting is not None
    assert acting.user == "system:serviceaccount:sluice:sluice"
    assert acting.groups == ("sluice.dev:break-glass",)


@pytest.mark.parametrize("name", ["zoë", "a\nb", "a\r"])
def test_a_name_that_no_header_can_hold_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="cannot be impersonated"):
        break_glass(Identity("admin", ()), name)


def test_the_audit_line_is_one_line_whatever_it_says() -> None:
    pod = Released("chat", "a", "uid-a", "7", "Ceiling: full")
    entry = ForcedReleaseEntry(
        pod, Outcome.REFUSED, "ad\nmin", "admin", "x" * 9000, NOW, "line\nbreak"
    )
    line = to_line(entry)
    assert line.count(b"\n") == 1
    assert list(json.loads(line))[:3] == ["time", "kind", "action"]
    assert len(json.loads(line)["reason"]) == 1024


def test_who_is_about_to_do_it_sees_where() -> None:
    pods = [replace(POD, namespace=f"n{number}") for number in range(12)] + [POD, POD]
    assert by_namespace(pods)[0] == ("chat", 2)
    text = announcement(pods, dry_run=False)
    assert text.startswith("about to take Sluice's gate off 14 pods in 13 namespaces")
    assert text.endswith("and 3 more")


@pytest.mark.parametrize(
    ("tally", "words"),
    [
        (Tally(released=2), "released 2 pods"),
        (Tally(2, gone=1), "released 2 pods, 1 had gone or been released meanwhile"),
        (
            Tally(2, left=[Result(POD, Outcome.REFUSED, "no")]),
            "released 2 pods, 1 pod kept its gate",
        ),
        (Tally(1, unseen=3), "released 1 pod, 3 pods have come since: run it again"),
    ],
)
def test_what_came_of_it_is_one_line(tally: Tally, words: str) -> None:
    assert conclusion(tally, dry_run=False) == words


def test_failures_are_told_the_first_of_them_and_what_to_do_about_a_webhook() -> None:
    failed = [Result(POD, Outcome.REFUSED, 'failed calling webhook "validate.sluice.dev"')] * 25
    lines = list(failures(failed))
    assert len(lines) == 22
    assert lines[0].startswith("error: chat/a: failed calling webhook")
    assert lines[20] == "error: and 5 more; the audit log has all of them"
    assert "kubectl delete validatingwebhookconfiguration sluice" in lines[21]


def test_it_is_never_done_without_saying_all() -> None:
    result = CliRunner().invoke(sluice.main, ["release", "--yes"])
    assert result.exit_code == BAD_INPUT
    assert "say --all" in result.output


@pytest.mark.parametrize("option", ["--namespace", "--lease-namespace", "--lease-name"])
@pytest.mark.parametrize("name", ["a/b", "Bad NS", "..", "ü"])
def test_what_can_be_no_name_is_said_before_the_cluster_is_asked(option: str, name: str) -> None:
    result = CliRunner().invoke(sluice.main, ["release", "--all", "--yes", option, name])
    assert result.exit_code == BAD_INPUT
    assert option in result.output
    assert f"{name!r} is no name" in result.output


class Cluster(Server):
    """A server that lists its pods; some come while others are written."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.pods = {name: raw_pod(GATE, name=name) for name in names}
        self.coming: list[str] = []
        self.selections: list[Selection] = []

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        self.selections.append(selection)
        names = sorted(self.pods)
        begin = int(continue_token or 0)
        chosen = names[begin : begin + min(limit, 2)]
        more = str(begin + len(chosen)) if begin + len(chosen) < len(names) else ""
        return Page([self.pods[name] for name in chosen], "1", more)

    async def patch_merge(
        self, target: Target, body: Any, *, dry_run: bool = False
    ) -> Mapping[str, object]:
        answer = await super().patch_merge(target, body, dry_run=dry_run)
        if not dry_run:
            self.pods[target.name] = raw_pod(name=target.name)
        if self.coming:
            name = self.coming.pop()
            self.pods[name] = raw_pod(GATE, name=name)
        return answer


class Lines:
    """An audit log."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def record_lines(self, lines: Sequence[bytes]) -> None:
        self.names += [json.loads(line)["name"] for line in lines]


async def all_released(
    cluster: Cluster, *, dry_run: bool = False
) -> tuple[Tally, Lines, list[tuple[int, int]]]:
    audit, shown = Lines(), list[tuple[int, int]]()
    orders = Orders("chat", Force("admin"), "admin", dry_run)
    tally = await release_all(
        cluster, orders, audit, lambda *far: shown.append(far), Waits().runtime()
    )
    return tally, audit, shown


async def test_pods_of_all_pages_and_those_that_come_meanwhile_are_released() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.coming = ["d", "e"]
    tally, audit, shown = await all_released(cluster)
    assert (tally.released, tally.left, tally.unseen) == (5, [], 0)
    assert sorted(audit.names) == ["a", "b", "c", "d", "e"]
    assert shown[-1] == (5, 5)
    assert {each.namespace for each in cluster.selections} == {"chat"}
    assert {each.field_selector for each in cluster.selections} == {"spec.nodeName="}


async def test_who_makes_pods_without_end_does_not_keep_it_for_ever() -> None:
    cluster = Cluster("a")
    cluster.coming = [f"p{number}" for number in range(100)]
    tally, _, _ = await all_released(cluster)
    assert (tally.released, tally.unseen) == (5, 1)


async def test_a_pod_that_was_refused_is_not_asked_about_twice() -> None:
    cluster = Cluster("a", "b")
    cluster.answers = [ForbiddenError("no", status=403)]
    tally, audit, _ = await all_released(cluster)
    assert (tally.released, len(tally.left), tally.unseen) == (1, 1, 0)
    assert sorted(audit.names) == ["a", "b"]


async def test_a_dry_run_looks_once_and_leaves_every_pod_as_it_is() -> None:
    cluster = Cluster("a", "b")
    tally, audit, _ = await all_released(cluster, dry_run=True)
    assert tally.released == 2
    assert sorted(audit.names) == ["a", "b"]
    assert all(gated_pod(each) for each in cluster.pods.values())
