# SPDX-License-Identifier: Apache-2.0
"""Where no extender is asked: pods are told at their release which nodes to prefer."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from reconciler.manifests.telemetry import TelemetryOptions
from tests.controlplane import ControlPlane, nodes
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.monitoring import PrometheusServer
from tests.controlplane.replica import Launch
from tests.integration.sluice.objects import Json, container, pod
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Team, new_team, until

pytestmark = pytest.mark.timeout(180)

PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NAMES: Final = ("preferred-a", "preferred-b", "preferred-c", "preferred-d")
_SELECTOR: Final = {"preferring": "yes"}
_OWN: Final = {
    "weight": 7,
    "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
}
_DOCUMENTS: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: prefers}
spec:
  namespaces: {selector: {matchLabels: {tenant: prefers}}}
  quota: {gpus: {guarantee: 20, ceiling: 20}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: slice}
spec: {mode: TimeSlice, replicas: 4, products: [NVIDIA-L40S]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: slices}
spec: {order: 1, rewrite: {profile: slice}}
"""


@pytest.fixture(scope="module")
def exporters() -> Iterator[Mapping[str, DcgmExporter]]:
    """An exporter for each node of two cards that do little."""
    made = {
        name: DcgmExporter(name, [Card(f"{name}-{i}", busy=0.1, used_mib=100.0) for i in range(2)])
        for name in _NAMES
    }
    for each in made.values():
        each.start()
    yield made
    for each in made.values():
        each.stop()


@pytest.fixture(scope="module")
def environment(
    monitoring: Mapping[str, Path], exporters: Mapping[str, DcgmExporter]
) -> Iterator[Mapping[str, str]]:
    with PrometheusServer(monitoring["prometheus"]) as server:
        server.set_targets([each.address for each in exporters.values()])
        yield {
            "PROMETHEUS_URL": server.url,
            "SLUICE_SAMPLING_INFERENCE_SECONDS": "1",
            "SLUICE_SAMPLING_TRAINING_SECONDS": "1",
        }


@pytest.fixture(scope="module")
def sluice(
    control_plane: ControlPlane,
    environment: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[InstalledSluice]:
    directory = tmp_path_factory.mktemp("preferring")
    policies = directory / "policies"
    policies.mkdir()
    (policies / "all.yaml").write_text(_DOCUMENTS, encoding="utf-8")
    control_plane.create_nodes(_node(name) for name in _NAMES)
    launch = Launch(("--preferred-nodes", "3"), environment)
    telemetry = TelemetryOptions(environment)
    with InstalledSluice(
        control_plane, policies, directory / "run", launch, telemetry=telemetry
    ) as installed:
        yield installed
    control_plane.kubectl("delete", "node", *_NAMES)


def _node(name: str) -> Mapping[str, object]:
    found: dict[str, Any] = dict(nodes.time_sliced(name, nodes.L40S, count=2))
    found["metadata"]["labels"] |= _SELECTOR
    return found


@pytest.fixture
def team(sluice: InstalledSluice, control_plane: ControlPlane, rest: Rest) -> Iterator[Team]:
    """A fresh namespace of the tenant, in which pods are released with preferences by now."""
    made = new_team(control_plane, rest, "prefers")
    until(lambda: _is_preferring(made), "the leader to rank nodes", 40)
    yield made
    rest.request("DELETE", f"{made.path}/pods?gracePeriodSeconds=0")
    rest.request("DELETE", made.path)


def _pod(name: str, **spec: Any) -> Json:
    return pod(container(gpus=1), name=name, nodeSelector=_SELECTOR, **spec)


def _is_preferring(team: Team) -> bool:
    """Release a pod that goes again, and tell whether it prefers nodes."""
    team.create(_pod("first"))
    found = team.running("first")
    deleted = team.kubectl("delete", "pod", "first", "--grace-period=0", "--force")
    assert deleted.ok, deleted.error
    return bool(_terms(found))


def _terms(live: Json) -> list[Any]:
    node = live["spec"].get("affinity", {}).get("nodeAffinity", {})
    found: list[Any] = node.get(PREFERRED, [])
    return found


def _preferred(live: Json) -> list[str]:
    """Return the nodes that a pod prefers by name, in the order of its terms."""
    return [
        term["preference"]["matchFields"][0]["values"][0]
        for term in _terms(live)
        if "matchFields" in term["preference"]
    ]


def test_pods_are_packed_by_the_default_scheduler_since_they_prefer_one_node(team: Team) -> None:
    found = []
    for number in range(5):
        team.create(_pod(f"p{number}"))
        found.append(team.running(f"p{number}"))
    assert len({live["spec"]["nodeName"] for live in found}) == 1
    for live in found:
        assert _preferred(live)[0] == live["spec"]["nodeName"]
        assert [term["weight"] for term in _terms(live)] == [100, 66, 33]


def test_pods_that_are_released_at_once_are_spread_over_what_the_first_ones_leave(
    team: Team,
) -> None:
    team.create(*(_pod(f"p{number}") for number in range(12)))
    found = team.placed(12)
    used = {live["spec"]["nodeName"] for live in found}
    assert len(used) == 2, "twelve shares are on two nodes of eight"


def test_a_pods_own_preferences_stay(team: Team) -> None:
    own = {"nodeAffinity": {PREFERRED: [_OWN]}}
    team.create(_pod("p", affinity=own))
    live = team.running("p")
    assert _terms(live)[0] == _OWN
    assert len(_preferred(live)) == 3


def test_a_hot_node_is_not_preferred(team: Team, exporters: Mapping[str, DcgmExporter]) -> None:
    team.create(_pod("cold"))
    hot = str(team.running("cold")["spec"]["nodeName"])
    for card in exporters[hot].cards:
        card.busy = 1.0
        card.used_mib = 40_000.0
    numbers = iter(range(100))

    def is_avoided() -> bool:
        name = f"p{next(numbers)}"
        team.create(_pod(name))
        return hot not in _preferred(team.running(name))

    until(is_avoided, "a pod that does not prefer the hot node", 30)
    for card in exporters[hot].cards:
        card.busy, card.used_mib = 0.1, 100.0
