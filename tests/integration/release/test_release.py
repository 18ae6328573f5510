# SPDX-License-Identifier: Apache-2.0
"""`sluice release --all` on a real API server, with Sluice running and with Sluice gone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from policies.model.keys import BREAK_GLASS_GROUP
from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.integration.release.conftest import TENANT, Release, annotation, gates
from tests.integration.sluice.objects import GATE, HOLD, Json
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Team, until

pytestmark = pytest.mark.timeout(120)

_ACCOUNT: Final = "system:serviceaccount:sluice:sluice"
_UNGATE: Final = '{"spec": {"schedulingGates": null}}'
_OPERATIONS: Final = Path(__file__).parents[3] / "docs" / "operations.md"
_CHARGE: Final = "state.sluice.dev/charge"
_FORCED: Final = "state.sluice.dev/forced"


def only(team: Team, *arguments: str) -> tuple[str, ...]:
    """Return the arguments for one namespace, without being asked."""
    return ("--all", f"--namespace={team.namespace}", "--yes", *arguments)


def status(rest: Rest) -> Json:
    found: Json = rest.get(f"/apis/sluice.dev/v1alpha1/tenants/{TENANT}").get("status", {})
    return found


def ungate(team: Team, name: str) -> str:
    """Try to take a gate off as an admin would, and return why that is refused."""
    answer = team.kubectl("patch", "pod", name, "--type=merge", f"--patch={_UNGATE}")
    assert not answer.ok
    return answer.error


def test_while_sluice_runs_pods_go_past_their_quota_and_are_counted(
    team: Team, rest: Rest, release: Release
) -> None:
    assert "[OwnedKey]" in ungate(team, "second")

    done = release(*only(team), "--reason", "INC-1234")

    assert done.code == 0, done.error
    assert done.out == "released 2 pods\n"
    assert f"off 2 pods in 1 namespace, whatever quota says: {team.namespace} 2" in done.error
    assert "holds the Lease" in done.error
    second = team.running("second")
    assert annotation(second, _FORCED).startswith("by admin at ")
    assert annotation(second, _FORCED).endswith(": INC-1234")
    assert annotation(second, "state.sluice.dev/reason") == ""
    assert annotation(second, _CHARGE) == ""
    assert gates(team.pod("third")) == [HOLD]
    # The third has no room to take: it is held by somebody else, and counts all the same.
    until(lambda: status(rest).get("used") == "3", f"what runs is counted: {status(rest)}")


def test_while_sluice_is_gone_it_works_as_well(
    team: Team, release: Release, without_sluice: Callable[[], None]
) -> None:
    without_sluice()
    assert "failed calling webhook" in ungate(team, "second")

    done = release(*only(team))

    assert done.code == 0, done.error
    assert done.out == "released 2 pods\n"
    team.running("second")
    assert gates(team.pod("third")) == [HOLD]


def test_each_pod_has_an_audit_line_that_says_who_and_why(team: Team, release: Release) -> None:
    before = team.pod("second")["metadata"]

    done = release(*only(team), "--reason", "drill")

    lines = {line["name"]: line for line in done.audit}
    assert lines.keys() == {"second", "third"}
    line = lines["second"]
    assert line["waitedFor"].startswith("Ceiling: ")
    del line["time"], line["waitedFor"]
    assert line == {
        "kind": "release",
        "action": "BreakGlass",
        "outcome": "Done",
        "dryRun": False,
        "user": "admin",
        "actingAs": "admin",
        "reason": "drill",
        "namespace": team.namespace,
        "name": "second",
        "uid": before["uid"],
        "resourceVersion": before["resourceVersion"],
        "message": None,
    }


def test_a_dry_run_asks_the_api_server_and_changes_nothing(team: Team, release: Release) -> None:
    before = [item["metadata"]["resourceVersion"] for item in team.pods()]

    done = release("--all", f"--namespace={team.namespace}", "--dry-run")

    assert done.code == 0, done.error
    assert done.out == "would release 2 pods\n"
    assert [item["metadata"]["resourceVersion"] for item in team.pods()] == before
    assert [line["dryRun"] for line in done.audit] == [True, True]


@pytest.mark.parametrize(
    ("answer", "words"),
    [("n\n", "error: nothing was done"), ("", "where nobody can be asked, say --yes")],
)
def test_nothing_is_done_without_a_yes(
    team: Team, release: Release, answer: str, words: str
) -> None:
    done = release("--all", f"--namespace={team.namespace}", answer=answer)

    assert done.code == 2
    assert words in done.error
    assert done.audit == ()
    assert GATE in gates(team.pod("second"))


def test_a_yes_is_enough(team: Team, release: Release) -> None:
    done = release("--all", f"--namespace={team.namespace}", answer="y\n")

    assert done.code == 0, done.error
    assert GATE not in gates(team.pod("second"))


def test_where_no_pod_waits_there_is_nothing_to_do(
    sluice: InstalledSluice, release: Release
) -> None:
    done = release("--all", "--namespace=kube-public")

    assert done.code == 0
    assert done.error == "no pod in namespace kube-public has Sluice's gate\n"


@pytest.fixture
def grant(control_plane: ControlPlane) -> Iterator[Callable[..., Path]]:
    """A function that makes a user with a cluster role of these rules, and gives a kubeconfig."""
    made: list[str] = []

    def user(name: str, *rules: Json) -> Path:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": list(rules),
        }
        control_plane.kubectl("apply", "--filename=-", stdin=role)
        binding = ("clusterrolebinding", name, f"--clusterrole={name}", f"--user={name}")
        control_plane.kubectl("create", *binding)
        made.append(name)
        return control_plane.add_user(name)

    yield user
    for name in made:
        control_plane.kubectl("delete", f"clusterrole/{name}", f"clusterrolebinding/{name}")


_PODS: Final = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "get", "patch"]}


def test_who_may_patch_pods_may_not_break_the_glass_for_that(
    team: Team, release: Release, grant: Callable[..., Path]
) -> None:
    done = release(*only(team), kubeconfig=grant("patcher", _PODS))

    assert done.code == 2
    assert "cannot impersonate" in done.error
    assert f"the right to impersonate the group {BREAK_GLASS_GROUP}" in done.error
    assert GATE in gates(team.pod("second"))


def test_people_on_call_need_no_more_than_the_role_that_the_docs_give(
    team: Team, release: Release, grant: Callable[..., Path]
) -> None:
    text = _OPERATIONS.read_text(encoding="utf-8")
    (block,) = [part for part in text.split("```yaml\n")[1:] if "kind: ClusterRole" in part]
    rules = yaml.safe_load(block.partition("```")[0])["rules"]

    done = release(*only(team), "--as", _ACCOUNT, kubeconfig=grant("on-call", *rules))

    assert done.code == 0, done.error
    assert [(line["user"], line["actingAs"]) for line in done.audit] == [("on-call", _ACCOUNT)] * 2
    assert annotation(team.pod("second"), _FORCED).startswith("by on-call at ")


def test_the_group_opens_nothing_but_the_gate(team: Team) -> None:
    groups = ("--as=somebody", f"--as-group={BREAK_GLASS_GROUP}", "--as-group=system:masters")
    forged: Any = {"metadata": {"annotations": {_CHARGE: "{}"}}}

    answer = team.kubectl(
        "patch", "pod", "second", "--type=merge", f"--patch={json.dumps(forged)}", *groups
    )

    assert not answer.ok
    assert "[OwnedKey]" in answer.error


def test_an_audit_log_that_cannot_be_written_stops_it_before_anything_is_done(
    team: Team, release: Release, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()

    done = release(*only(team), f"--audit={tmp_path / 'file' / 'audit.jsonl'}")

    assert done.code == 2
    assert "--audit" in done.error
    assert GATE in gates(team.pod("second"))
