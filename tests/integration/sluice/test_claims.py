# SPDX-License-Identifier: Apache-2.0
"""GPUs through ResourceClaims: refused where the claim is made, and where a pod uses one."""

import pytest

from tests.integration.sluice.objects import Json, container, plain_pod
from tests.integration.sluice.team import Team

_GPU_CLASS = "gpu.nvidia.com"
_EXACTLY = {"name": "device", "exactly": {"deviceClassName": _GPU_CLASS}}
_ALTERNATIVES = {
    "name": "device",
    "firstAvailable": [
        {"name": "nic", "deviceClassName": "nic.example.test"},
        {"name": "mig", "deviceClassName": "mig.nvidia.com"},
    ],
}


def _claim(request: Json, kind: str = "ResourceClaim") -> Json:
    spec: Json = {"devices": {"requests": [request]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "mine"},
        "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec,
    }


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize("request_", [_EXACTLY, _ALTERNATIVES], ids=["exactly", "alternatives"])
def test_a_claim_of_a_gpu_class_is_refused(team_a: Team, kind: str, request_: Json) -> None:
    answer = team_a.apply(_claim(request_, kind))

    assert not answer.ok
    assert "denied the request: sluice: [ClaimsUnsupported] device class " in answer.error
    assert "nvidia.com" in answer.error
    assert team_a.get(kind)["items"] == []


def test_a_claim_of_another_class_is_no_business_of_sluice(team_a: Team) -> None:
    nic = {"name": "device", "exactly": {"deviceClassName": "nic.example.test"}}

    answer = team_a.apply(_claim(nic), _claim(nic, "ResourceClaimTemplate"))

    assert answer.ok, answer.error


def test_a_pod_with_any_claim_is_refused_since_its_class_is_not_told(team_a: Team) -> None:
    claims = [{"name": "device", "resourceClaimTemplateName": "mine"}]
    uses = container(resources={"claims": [{"name": "device"}]})

    answer = team_a.apply(plain_pod(resourceClaims=claims, containers=[uses]))

    assert not answer.ok
    assert "[ClaimsUnsupported] spec.resourceClaims" in answer.error
