# SPDX-License-Identifier: Apache-2.0
"""What people are told: refused releases, moved namespaces, nodes without room, odd gangs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.integration.quota.conftest import LENDER, NAME, command, gpus, says
from tests.integration.sluice.objects import Json, gates, workload
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Team, until

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_CPUS_OF_NODE: Final = 96


@pytest.fixture
def refusing(control_plane: ControlPlane, team: Team) -> Iterator[None]:
    """Somebody else's admission policy: no gate may be taken off in the team's namespace."""
    objects = _policy(team.namespace)
    listed: Json = {"apiVersion": "v1", "kind": "List", "items": objects}
    control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=listed)
    yield
    control_plane.kubectl("delete", "--ignore-not-found", "--filename=-", stdin=listed)


def _policy(namespace: str) -> list[Json]:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["pods"],
    }
    condition = (
        "oldObject.spec.?schedulingGates.orValue([]).size()"
        " <= object.spec.?schedulingGates.orValue([]).size()"
    )
    policy = {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": condition, "message": "not on a Monday"}],
        },
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {
            "policyName": namespace,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        },
    }
    return [policy, binding]


def _reason(item: Json) -> str:
    return str(item["metadata"].get("annotations", {}).get("state.sluice.dev/reason", ""))


def _refuses(team: Team) -> bool:
    """Tell whether the policy acts yet: it takes the API server a moment."""
    patch = '{"spec":{"schedulingGates":[]}}'
    answer = team.kubectl(
        "patch", "pod/probe", "--type=merge", f"--patch={patch}", "--dry-run=server"
    )
    return "not on a Monday" in answer.error


def test_a_release_that_others_refuse_is_told_counted_and_tried_again(
    sluice: InstalledSluice, team: Team, rest: Rest, refusing: None, control_plane: ControlPlane
) -> None:
    probe = gpus(1, "probe")
    probe["spec"]["schedulingGates"] = [{"name": "example.test/hold"}]
    team.create(probe)
    until(lambda: _refuses(team), "the policy of others")

    team.create(gpus(1, "refused"))

    until(lambda: _reason(team.pod("refused")).startswith("Refused: "), "its reason")
    assert "not on a Monday" in _reason(team.pod("refused"))
    assert "not on a Monday" in team.event("ReleaseRefused", "Refused: ")
    says(rest, pending=1, used="0")
    text = command(sluice, "explain", "pod", f"{team.namespace}/refused").stdout
    assert "ends it:       whoever refuses its release" in text

    name = team.namespace
    control_plane.kubectl("delete", "validatingadmissionpolicybinding", name)
    until(lambda: not gates(team.pod("refused")), "its release", seconds=60)
    assert not _reason(team.pod("refused"))
    says(rest, pending=0, used="1")


def test_pods_of_a_moved_namespace_count_for_its_new_tenant_and_an_event_says_so(
    sluice: InstalledSluice, team: Team, rest: Rest
) -> None:
    team.create(gpus(1, "moved"))
    says(rest, used="1")

    team.kubectl("label", "namespace", team.namespace, f"tenant={LENDER}", "--overwrite")

    says(rest, tenant=LENDER, used="1")
    says(rest, used="0")
    note = team.event("TenantChanged", f"belonged to tenant {NAME}; all of its GPU pods count for")
    assert note.endswith(f"count for tenant {LENDER} now")

    team.kubectl("label", "namespace", team.namespace, "tenant-")
    team.event("TenantChanged", f"belonged to tenant {LENDER} and belongs to no tenant now")


def _member(name: str, size: int, **parts: Any) -> Json:
    made = gpus(1, name)
    made["metadata"]["labels"] = {"sluice.dev/gang": "trio"}
    made["metadata"]["annotations"] = {"sluice.dev/gang-size": str(size)}
    made["spec"] |= parts
    return made


def _with_cpus(name: str, count: int) -> Json:
    made = gpus(1, name)
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": count}
    return made


def test_where_quota_is_free_and_no_node_has_room_an_event_says_so(team: Team, rest: Rest) -> None:
    team.create(_with_cpus("large", _CPUS_OF_NODE - 1))
    says(rest, used="1")

    team.create(_with_cpus("second", _CPUS_OF_NODE - 1), _with_cpus("huge", 2 * _CPUS_OF_NODE))

    team.event("NoNodeFits", "quota is free, but no node has room for it")
    team.event("NoSuchNode", "no node could hold it, were it empty")
    until(lambda: _reason(team.pod("second")).startswith("NoNodeFits: "), "its reason")
    until(lambda: _reason(team.pod("huge")).startswith("NoSuchNode: "), "the reason of the other")
    team.kubectl("delete", "pod/large", "--grace-period=0", "--force")
    until(lambda: not gates(team.pod("second")), "its release once there is room")


def test_a_gang_goes_when_it_is_whole_and_a_wrong_count_is_told(team: Team, rest: Rest) -> None:
    team.create(_member("one", 3), _member("two", 3))
    for name in ("one", "two"):
        until(lambda name=name: "2 of 3" in _reason(team.pod(name)), f"why {name} waits")  # type: ignore[misc]
    says(rest, pending=2, used="0")

    team.create(_member("odd", 2))
    team.event("GangProblem", "its members do not agree on its size")
    assert all(gates(item) for item in team.pods())

    team.kubectl("delete", "pod/odd")
    team.create(_member("three", 3))
    until(lambda: not any(gates(item) for item in team.pods()), "the release of all three")
    says(rest, pending=0, used="3")


def test_a_rolling_update_whose_new_pod_finds_no_room_is_told_at_apply(
    team: Team, rest: Rest
) -> None:
    says(rest, used="0")
    work = workload("Deployment", gpus(1, "work"), replicas=3)
    told = "sluice: deployment work: in a rolling update a new pod of 1 GPU beside the 3 old ones"

    def warnings() -> list[str]:
        answer = team.apply(work, dry_run=True)
        assert answer.ok, answer.error
        return [text for text in answer.warnings if text.startswith(told)]

    (warning,) = until(warnings, "the warning, once the webhook knows that all is free")
    assert warning.endswith("use maxSurge: 0 and maxUnavailable: 1")


def test_a_switch_releases_pods_for_which_there_is_no_node_yet(
    team: Team, rest: Rest, policies: Path
) -> None:
    team.create(_with_cpus("huge", 2 * _CPUS_OF_NODE))
    until(lambda: _reason(team.pod("huge")).startswith("NoSuchNode: "), "its reason")

    file = policies / "settings.yaml"
    file.write_text(_WITHOUT_NODES, encoding="utf-8")
    try:
        until(lambda: not gates(team.pod("huge")), "its release")
        says(rest, used="1")

        def cannot_be_scheduled() -> bool:
            conditions = team.pod("huge")["status"].get("conditions", [])
            return any(each.get("reason") == "Unschedulable" for each in conditions)

        until(cannot_be_scheduled, "what a cluster autoscaler looks for")
    finally:
        file.unlink()


_WITHOUT_NODES: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {name: cluster}
spec: {queue: {releaseWithoutNodes: true}}
"""
