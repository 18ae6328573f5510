# SPDX-License-Identifier: Apache-2.0
"""A claim that takes out what others have put into a pod is not believed."""

import json
from typing import Any

import pytest

from policies.model.keys import DECISION, TENANT_LABEL
from policies.model.reasons import Reason
from tests.support.builders import (
    GPU,
    Json,
    container,
    mutate,
    patched,
    pod,
    rewritten,
    validate,
)
from tests.support.pods import REQUIRED

_POOL: Json = {"key": "pool", "operator": "In", "values": ["ours"]}
_TOLERATION: Json = {"key": "pool", "operator": "Exists", "effect": "NoSchedule"}
_APART: Json = {
    "labelSelector": {"matchExpressions": [{"key": "tenant", "operator": "Exists"}]},
    "topologyKey": "kubernetes.io/hostname",
}
_ALONE: Json = {"labelSelector": {"matchExpressions": []}, "topologyKey": "kubernetes.io/hostname"}
_BY_TENANT: Json = {
    "labelSelector": {"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]},
    "topologyKey": "rack",
}
_PROXY: Json = {"name": "HTTPS_PROXY", "value": "http://proxy"}


def _pinned(**parts: Any) -> Json:
    """Return a pod with everything in it that other webhooks put into pods."""
    terms = [{"matchExpressions": [_POOL]}]
    return pod(
        container(gpus="1", env=[_PROXY]),
        container("beside", resources={"limits": {"memory": "1Gi"}}),
        nodeSelector={"pool": "ours"},
        tolerations=[_TOLERATION],
        affinity={
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}},
            "podAntiAffinity": {REQUIRED: [_APART, _ALONE, _BY_TENANT]},
        },
        **parts,
    )


def _claiming(**added: Any) -> Json:
    """Return the same pod with the decision that the first pass would leave, and more in it."""
    honest = rewritten(_pinned())["metadata"]["annotations"][DECISION]
    claim = json.loads(honest)
    for key, value in added.items():
        target = claim["asked"] if key == "asked" else claim["added"]
        if key == "asked":
            target |= value
        elif isinstance(value, dict):
            target[key] = {**target.get(key, {}), **value}
        elif isinstance(value, list):
            target[key] = [*target.get(key, []), *value]
        else:
            target[key] = value
    return _pinned(annotations={DECISION: json.dumps(claim)})


_FORGED: dict[str, Json] = {
    "selector": _claiming(nodeSelector={"pool": "ours"}),
    "affinity": _claiming(expressions=[_POOL], affinityCreated=True),
    "toleration": _claiming(tolerations=[_TOLERATION]),
    "anti-affinity": _claiming(antiAffinity=[_APART]),
    "anti-affinity-to-all": _claiming(antiAffinity=[_ALONE]),
    "anti-affinity-to-tenants": _claiming(antiAffinity=[_BY_TENANT]),
    "variable": _claiming(env={"main": {"HTTPS_PROXY": "http://proxy"}}),
    "memory": _claiming(asked={"beside": {"limits": {"memory": "1Ti"}, "requests": {}}}),
}


@pytest.mark.parametrize("forged", _FORGED.values(), ids=_FORGED)
def test_what_others_added_stands_whatever_the_claim_says(forged: Json) -> None:
    made = patched(forged, mutate(forged))

    assert made["spec"] == rewritten(_pinned())["spec"]
    assert validate(made).allowed


@pytest.mark.parametrize("forged", _FORGED.values(), ids=_FORGED)
def test_the_second_pass_refuses_a_claim_that_the_first_has_not_seen(forged: Json) -> None:
    made = rewritten(_pinned())
    made["metadata"]["annotations"] = forged["metadata"]["annotations"]

    assert Reason.REWRITE_MISSING in validate(made).reasons


def test_what_sluice_added_is_still_taken_back_when_it_is_no_longer_due() -> None:
    made = rewritten(_pinned())
    del made["spec"]["containers"][0]["resources"]
    claim = json.loads(made["metadata"]["annotations"][DECISION])
    claim["asked"] = {"main": {"limits": {GPU: "0"}, "requests": {GPU: "0"}}}
    made["metadata"]["annotations"][DECISION] = json.dumps(claim)

    restored = patched(made, mutate(made))

    assert restored["spec"]["nodeSelector"] == {"pool": "ours"}
    assert restored["spec"]["tolerations"] == [_TOLERATION]
