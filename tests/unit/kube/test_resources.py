# SPDX-License-Identifier: Apache-2.0
"""Paths of the API."""

import pytest

from reconciler.kube.resources import NAMESPACES, NODES, PODS, Resource, Selection, Target

LEASES = Resource("coordination.k8s.io", "v1", "leases")


def test_core_and_group_resources_have_their_paths() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path(namespace="team") == "/api/v1/namespaces/team/pods"
    assert PODS.path("a", "team", "status") == "/api/v1/namespaces/team/pods/a/status"
    assert NODES.path("n1") == "/api/v1/nodes/n1"
    assert NAMESPACES.path("team") == "/api/v1/namespaces/team"
    assert LEASES.path("l", "ns") == "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"
    assert Target(PODS, "a", "team", "eviction").path.endswith("/pods/a/eviction")


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a%2Fb"])
def test_a_name_cannot_lead_to_another_path(name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        PODS.path(name, "team")
    with pytest.raises(ValueError, match="not a name"):
        PODS.path("a", name)


def test_names_are_encoded() -> None:
    assert PODS.path("a?b#c") == "/api/v1/pods/a%3Fb%23c"


def test_a_selection_says_what_it_selects() -> None:
    selection = Selection(PODS, "team", "spec.nodeName=", "app=web")
    assert selection.query() == {"fieldSelector": "spec.nodeName=", "labelSelector": "app=web"}
    assert str(selection) == "pods in team (spec.nodeName=, app=web)"
    assert str(Selection(NODES)) == "nodes"
    assert Selection(NODES).query() == {}
