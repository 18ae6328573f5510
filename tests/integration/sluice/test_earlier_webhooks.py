# SPDX-License-Identifier: Apache-2.0
"""Another mutating webhook changes pods before Sluice: what it adds counts, and it stands."""

import json

import pytest

from certs.files import CertificateFiles
from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import (
    DECISION,
    GPU,
    SHARED,
    Json,
    container,
    decision,
    gpus,
    plain_pod,
    pod,
)
from tests.integration.sluice.tampering import BEFORE, Other, add_container, pin, tampering
from tests.integration.sluice.team import Team

_POOL = {"key": "pool", "operator": "In", "values": ["ours"]}


def test_a_gpu_that_was_added_before_is_rewritten(
    team_a: Team, control_plane: ControlPlane, other_files: CertificateFiles
) -> None:
    adds = Other(add_container(container("added", gpus="1")), name=BEFORE)
    with tampering(team_a, control_plane, other_files, adds):
        team_a.create(plain_pod())

    made = team_a.running("plain")
    assert gpus(made) == {"added": {SHARED: "1"}}
    assert decision(made)


def _claiming_to_have_added_the_pool() -> str:
    claim = {
        "v": 1,
        "generation": "0",
        "policy": "quarter",
        "profiles": {"main": "slice-4"},
        "exclusive": False,
        "asked": {"main": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}},
        "given": {"main": {SHARED: 1}},
        "added": {
            "nodeSelector": {"pool": "ours"},
            "expressions": [_POOL],
            "affinityCreated": True,
            "tolerations": [],
        },
    }
    return json.dumps(claim)


@pytest.mark.parametrize(
    "annotations",
    [{}, {DECISION: _claiming_to_have_added_the_pool()}],
    ids=["honest", "forged-decision"],
)
@pytest.mark.parametrize("asked", [pod(), plain_pod("gpu")], ids=["gpu", "plain"])
def test_where_another_has_pinned_a_pod_to_it_stays_pinned(
    team_a: Team,
    control_plane: ControlPlane,
    other_files: CertificateFiles,
    asked: Json,
    annotations: dict[str, str],
) -> None:
    asked = {**asked, "metadata": {**asked["metadata"], "annotations": annotations}}
    with tampering(team_a, control_plane, other_files, Other(pin("pool", "ours"), name=BEFORE)):
        team_a.create(asked)

    spec = team_a.pod()["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert spec["nodeSelector"]["pool"] == "ours"
    assert all(_POOL in term["matchExpressions"] for term in required["nodeSelectorTerms"])
