# SPDX-License-Identifier: Apache-2.0
"""What Sluice's service account may do: what its work needs, which all these tests run with."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from policies.vendors import build_catalog
from reconciler.manifests.access import accounts
from reconciler.manifests.options import ManifestOptions
from tests.controlplane import ControlPlane
from tests.integration.sluice.running import Running

_SLUICE = "system:serviceaccount:sluice:sluice"
_ANYBODY = "system:serviceaccount:default:default"

Permission = tuple[str, str, str]


def _rules(control_plane: ControlPlane, user: str, namespace: str) -> set[Permission]:
    """Return group, resource and verb of all that a service account may do."""
    group = f"system:serviceaccounts:{user.split(':')[2]}"
    groups = ("system:serviceaccounts", group, "system:authenticated")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    answer = control_plane.kubectl(
        *("create", "--filename=-", "--output=json", "--validate=false", f"--as={user}"),
        *(f"--as-group={name}" for name in groups),
        stdin=review,
    )
    status = json.loads(answer.stdout)["status"]
    assert not status["incomplete"]
    return _permissions(status["resourceRules"])


def _permissions(rules: Iterable[Any]) -> set[Permission]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("namespace", ["default", "kube-system", "sluice"])
def test_it_may_do_what_is_listed_and_nothing_else(
    sluice: Running, control_plane: ControlPlane, namespace: str
) -> None:
    anybody = _rules(control_plane, _ANYBODY, namespace)

    own = _rules(control_plane, _SLUICE, namespace) - anybody

    (account,) = accounts(ManifestOptions(build_catalog(), ca_bundle=b"of files"))
    leases = account.own_rules if namespace == "sluice" else ()
    assert own == _permissions((*account.cluster_rules, *leases))


@pytest.mark.parametrize(
    "question",
    [
        ("get", "secrets"),
        ("create", "pods"),
        ("update", "pods"),
        ("patch", "pods", "--subresource=status"),
        ("patch", "pods", "--subresource=ephemeralcontainers"),
        ("get", "leases/another", "--namespace=sluice"),
        ("watch", "leases", "--namespace=sluice"),
        ("update", "leases", "--namespace=default"),
        ("create", "pods", "--subresource=binding"),
        ("create", "pods", "--subresource=exec"),
        ("patch", "nodes"),
        ("patch", "namespaces"),
        ("create", "serviceaccounts", "--subresource=token"),
        ("impersonate", "users"),
        ("patch", "mutatingwebhookconfigurations"),
        ("patch", "clusterroles"),
        ("get", "configmaps"),
    ],
    ids=" ".join,
)
def test_it_may_not(
    sluice: Running, control_plane: ControlPlane, question: tuple[str, ...]
) -> None:
    answer = control_plane.kubectl(
        "auth", "can-i", *question, "--all-namespaces", f"--as={_SLUICE}", check=False
    )

    assert answer.stdout == "no\n"


def test_its_token_works_and_is_bound_by_that(sluice: Running, control_plane: ControlPlane) -> None:
    def as_sluice(*arguments: str) -> str:
        done = control_plane.kubectl(
            *arguments, f"--kubeconfig={sluice.installed.kubeconfig}", check=False
        )
        return done.stderr

    assert as_sluice("get", "nodes") == ""
    assert "Forbidden" in as_sluice("get", "secrets", "--all-namespaces")
    assert "Forbidden" in as_sluice("delete", "node/cpu", "--dry-run=server")
