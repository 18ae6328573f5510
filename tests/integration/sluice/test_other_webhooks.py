# SPDX-License-Identifier: Apache-2.0
"""Another mutating webhook changes pods after Sluice: that is mended, or refused at the end.

With reinvocationPolicy Never the other is called once, and Sluice, called again, mends it. With
IfNeeded it changes the pod once more, and only the validating pass is left.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from certs.files import CertificateFiles
from tests.controlplane import ControlPlane
from tests.integration.sluice import tampering as other
from tests.integration.sluice.objects import (
    GATE,
    HOLD,
    SHARED,
    container,
    decision,
    gates,
    gpus,
    plain_pod,
    pod,
    void_containers,
)
from tests.integration.sluice.team import Answer, Team

_HELD = pod(schedulingGates=[{"name": HOLD}])
_GPU_SIDECAR = other.add_container(container("added", gpus="1"))
_PLAIN_SIDECAR = other.add_container(container("added"))

_CHANGES: dict[str, tuple[other.Change, str]] = {
    "adds-a-gpu-container": (_GPU_SIDECAR, "spec.containers"),
    "drops-the-gate": (other.drop_gate, "spec.schedulingGates (sluice.dev/quota)"),
    "drops-the-toleration": (other.drop_toleration, "spec.tolerations"),
    "drops-the-affinity": (other.drop_affinity, "spec.affinity"),
    "drops-the-selector": (other.drop_selector, "spec.nodeSelector"),
    "asks-for-a-whole-gpu": (other.ask_for_a_whole_gpu, "spec.containers[main].resources"),
}

Tamper = Callable[[other.Change, str], None]


@pytest.fixture
def tamper(
    team_a: Team, control_plane: ControlPlane, other_files: CertificateFiles
) -> Iterator[Tamper]:
    """A function that registers the other webhook for team_a; it ends with the test."""
    with ExitStack() as stack:

        def start(change: other.Change, again: str) -> None:
            tampering = other.tampering(
                team_a, control_plane, other_files, other.Other(change, again)
            )
            stack.enter_context(tampering)

        yield start


def _is_refused(answer: Answer, team: Team) -> bool:
    """Tell whether the second pass refused, and nothing was stored."""
    return not answer.ok and "validate.sluice.dev" in answer.error and team.pods() == []


@pytest.mark.parametrize(("change", "place"), _CHANGES.values(), ids=_CHANGES)
def test_what_is_changed_once_is_mended(
    team_a: Team, tamper: Tamper, change: other.Change, place: str
) -> None:
    tamper(change, "Never")

    team_a.create(_HELD)

    made = team_a.pod()
    assert all(given == {SHARED: "1"} for given in gpus(made).values())
    assert set(gates(made)) == {HOLD, GATE}
    assert made["spec"]["nodeSelector"]["nvidia.com/gpu.sharing-strategy"] == "time-slicing"
    assert "NVIDIA-H100-80GB-HBM3" in str(made["spec"]["affinity"])
    assert "nvidia.com/gpu" in {t.get("key") for t in made["spec"]["tolerations"]}
    assert decision(made)


@pytest.mark.parametrize(("change", "place"), list(_CHANGES.values())[1:], ids=list(_CHANGES)[1:])
def test_what_is_changed_again_and_again_is_refused(
    team_a: Team, tamper: Tamper, change: other.Change, place: str
) -> None:
    tamper(change, "IfNeeded")

    answer = team_a.apply(_HELD)

    assert _is_refused(answer, team_a)
    assert "[RewriteMissing] another webhook or client has altered" in answer.error
    assert place in answer.error


@pytest.mark.parametrize("again", ["Never", "IfNeeded"])
def test_a_selector_of_other_nodes_is_refused(team_a: Team, tamper: Tamper, again: str) -> None:
    tamper(other.change_selector, again)

    answer = team_a.apply(pod())

    assert not answer.ok
    assert "[PlacementConflict]" in answer.error
    assert team_a.pods() == []


def test_a_dropped_decision_is_made_again(team_a: Team, tamper: Tamper) -> None:
    tamper(other.drop_annotations, "Never")

    team_a.create(pod())

    made = team_a.running()
    assert gpus(made) == {"main": {SHARED: "1"}}
    assert decision(made)
    assert made["spec"]["nodeName"] == "h100-shared"


def test_a_decision_dropped_for_good_is_refused(team_a: Team, tamper: Tamper) -> None:
    tamper(other.drop_annotations, "IfNeeded")

    answer = team_a.apply(pod())

    assert _is_refused(answer, team_a)
    assert "[RewriteMissing]" in answer.error


@pytest.mark.parametrize("again", ["Never", "IfNeeded"])
def test_a_gpu_added_to_a_pod_without_gpus_is_refused(
    team_a: Team, tamper: Tamper, again: str
) -> None:
    """Sluice was not called in the first round, and so is not in the second either."""
    tamper(_GPU_SIDECAR, again)

    answer = team_a.apply(plain_pod())

    assert _is_refused(answer, team_a)
    assert "[RewriteMissing] the pod was not rewritten" in answer.error


@pytest.mark.parametrize("again", ["Never", "IfNeeded"])
def test_all_devices_set_in_a_gpu_container_are_refused(
    team_a: Team, tamper: Tamper, again: str
) -> None:
    tamper(other.see_all_devices, again)

    answer = team_a.apply(pod())

    assert not answer.ok
    assert "[DeviceVariable] container main" in answer.error
    assert team_a.pods() == []


def test_void_that_is_dropped_once_is_set_again(team_a: Team, tamper: Tamper) -> None:
    tamper(other.drop_void, "Never")

    team_a.create(plain_pod())

    assert void_containers(team_a.running("plain")) == {"main"}


@pytest.mark.parametrize("change", [other.drop_void, other.see_all_devices])
def test_void_that_is_dropped_for_good_is_refused(
    team_a: Team, tamper: Tamper, change: other.Change
) -> None:
    tamper(change, "IfNeeded")

    answer = team_a.apply(plain_pod())

    assert not answer.ok
    assert "[DeviceVariable]" in answer.error
    assert team_a.pods() == []


@pytest.mark.parametrize("again", ["Never", "IfNeeded"])
def test_an_injected_sidecar_without_gpus_is_welcome_and_gets_void(
    team_a: Team, tamper: Tamper, again: str
) -> None:
    tamper(_PLAIN_SIDECAR, again)

    team_a.create(pod(), plain_pod())

    running = team_a.running()
    assert gpus(running) == {"main": {SHARED: "1"}}
    assert void_containers(running) == {"added"}
    assert void_containers(team_a.running("plain")) == {"main", "added"}
