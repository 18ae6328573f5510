# SPDX-License-Identifier: Apache-2.0
"""What people are told of a release that others refuse, and of a namespace that is moved."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.integration.quota.conftest import LENDER, NAME, command, gpus, says
from tests.integration.sluice.objects import Json, gates
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Team, until

_ADMISSION: Final = "admissionregistration.k8s.io/v1"


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
