# SPDX-License-Identifier: Apache-2.0
"""What Sluice knows of the cluster follows the cluster: labels of namespaces and of nodes."""

from collections.abc import Callable, Iterator

import pytest

from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import MIG, SHARED, gpus, pod
from tests.integration.sluice.team import Team, until

_NODE = "node/h100-mig"
_STATE = "nvidia.com/mig.config.state"
_WAITS = f"sluice: no node offers {MIG} as profile h100-1g.10gb needs it: the pod will wait"


@pytest.fixture
def label_node(control_plane: ControlPlane) -> Iterator[Callable[[str], None]]:
    """A function that says in which state the MIG node's geometry is; it is as before at last."""

    def label(state: str) -> None:
        control_plane.kubectl("label", _NODE, f"{_STATE}={state}", "--overwrite")

    yield label
    label("success")


def test_a_relabelled_namespace_is_another_tenants(
    team_a: Team, control_plane: ControlPlane
) -> None:
    team_a.create(pod(name="before"))

    control_plane.kubectl("label", "namespace", team_a.namespace, "tenant=team-m", "--overwrite")
    until(
        lambda: MIG in " ".join(team_a.apply(pod(), dry_run=True).warnings),
        "the namespace's new tenant",
    )

    team_a.create(pod())
    assert gpus(team_a.running()) == {"main": {MIG: "1"}}
    assert gpus(team_a.running("before")) == {"main": {SHARED: "1"}}


def test_a_namespace_without_its_label_has_no_gpus(
    team_a: Team, control_plane: ControlPlane
) -> None:
    control_plane.kubectl("label", "namespace", team_a.namespace, "tenant-")

    until(lambda: "[NoTenant]" in team_a.apply(pod(), dry_run=True).error, "its having no tenant")


def test_a_node_that_is_being_cut_is_no_target_until_it_is_done(
    team_m: Team, label_node: Callable[[str], None]
) -> None:
    label_node("pending")
    until(lambda: _WAITS in team_m.apply(pod(), dry_run=True).warnings, "the warning")

    answer = team_m.apply(pod())

    assert answer.ok, answer.error
    assert _WAITS in answer.warnings
    waiting = team_m.kubectl(
        "wait", "pod/gpu", "--for=condition=PodScheduled=False", "--timeout=20s"
    )
    assert waiting.ok, waiting.error

    label_node("success")
    assert team_m.running()["spec"]["nodeName"] == "h100-mig"
    until(lambda: _WAITS not in team_m.apply(pod(name="b"), dry_run=True).warnings, "its end")
