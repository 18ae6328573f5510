# SPDX-License-Identifier: Apache-2.0
"""Static pods, which a kubelet runs on its own and only reports."""

import pytest

from policies.model.keys import MIRROR_ANNOTATION
from policies.model.reasons import Reason
from policies.model.request import User
from tests.support.builders import DEVELOPER, GPU, container, facts, mutate, pod, validate

NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
MIRROR = {MIRROR_ANNOTATION: "abc"}


@pytest.mark.parametrize("namespace", ["chat", "other", "unseen"])
def test_a_mirror_pod_is_neither_changed_nor_refused_but_counted(namespace: str) -> None:
    found = pod(container(gpus="2"), namespace=namespace, annotations=MIRROR, nodeName="n1")
    first = mutate(found, user=NODE, facts=facts({"other": {}}))

    assert first.allowed
    assert first.patch == ()
    assert first.asked == {GPU: 2}
    assert validate(found, user=NODE, facts=facts({"other": {}})).allowed


def test_a_mirror_pod_is_not_refused_for_an_amount_that_cannot_be_read() -> None:
    found = pod(container(gpus="0.5"), annotations=MIRROR, nodeName="n1")

    assert validate(found, user=NODE).allowed


@pytest.mark.parametrize(
    "user",
    [
        DEVELOPER,
        User("system:node:n2", groups=("system:nodes",)),
        User("system:node:n1", groups=("system:authenticated",)),
    ],
    ids=["a person", "another node", "a name outside the group of nodes"],
)
def test_only_the_nodes_own_kubelet_makes_mirror_pods(user: User) -> None:
    found = pod(annotations=MIRROR, nodeName="n1")

    assert Reason.NODE_NAME in mutate(found, user=user).reasons


def test_a_node_that_makes_an_ordinary_pod_is_nobody_special() -> None:
    assert Reason.NODE_NAME in mutate(pod(nodeName="n1"), user=NODE).reasons
