# SPDX-License-Identifier: Apache-2.0
"""Sluice is taken out of a cluster in the order that docs/operations.md gives."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane import ControlPlane, nodes
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.replica import Launch
from tests.integration.release.conftest import DOCUMENTS, gates, releasing, waiting_team
from tests.integration.sluice.objects import HOLD, Json, pod
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Team, until

pytestmark = pytest.mark.timeout(180)

_WEBHOOKS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_OF_SLUICE: Final = (
    "crd,namespace,clusterrole,clusterrolebinding,mutatingwebhookconfiguration,"
    "validatingwebhookconfiguration,validatingadmissionpolicy,mutatingadmissionpolicy"
)


@pytest.fixture
def cluster(binaries: Mapping[str, Path]) -> Iterator[ControlPlane]:
    with ControlPlane(binaries) as started:
        started.create_nodes([nodes.whole("gpus")])
        yield started


@pytest.fixture
def rest_there(cluster: ControlPlane) -> Iterator[Rest]:
    with closing(Rest(cluster)) as connection:
        yield connection


def _ours(cluster: ControlPlane) -> list[str]:
    found = cluster.get(_OF_SLUICE, "--selector=app.kubernetes.io/name=sluice")["items"]
    return [f"{item['kind']}/{item['metadata']['name']}" for item in found]


def _starts(team: Team, name: str) -> Json:
    """Create a GPU pod for a tainted node, once the API server lets it be, and see it run."""
    written = pod(name=name, tolerations=[{"operator": "Exists"}])
    until(lambda: team.apply(written).ok, "a pod is taken as it is")
    return team.running(name)


@pytest.mark.parametrize("command", ["run", "serve"])
def test_no_pod_stays_behind_a_gate_and_nothing_of_sluice_is_left(
    cluster: ControlPlane, rest_there: Rest, tmp_path: Path, command: str
) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "all.yaml").write_text(DOCUMENTS, encoding="utf-8")
    release = releasing(cluster, tmp_path)
    with InstalledSluice(cluster, policies, tmp_path / "run", Launch(command=command)) as sluice:
        leader = sluice.replica
        if command == "serve":
            leader = sluice.add_replica("reconciler", Launch(command="reconcile"))
        team = waiting_team(cluster, rest_there)

        leader.stop()
        assert release("--all", "--yes").code == 0
        team.running("second")
        if command == "serve":
            team.create(pod(name="between"))
        for kind in _WEBHOOKS:
            sluice.delete(kind)
        assert release("--all", "--yes").code == 0
        live = _starts(team, "afterwards")
    assert live["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert [gates(item) for item in team.pods() if gates(item)] == [[HOLD]]
    until(lambda: not _ours(cluster), f"nothing is left: {_ours(cluster)}", 60)
