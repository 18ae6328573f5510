# SPDX-License-Identifier: Apache-2.0
"""Gangs that are declared by PodGroups, where a server has them."""

from typing import Any

import pytest

from reconciler.kube.client import Client
from reconciler.kube.served import ServedSettings
from reconciler.kube.store import Key
from reconciler.quota.pod_groups import PodGroupWatch, sized
from tests.support.fake_apiserver import FakeApiServer
from tests.support.running import running
from tests.support.waiting import until

PATH = "/apis/scheduling.k8s.io/v1beta1/podgroups"


def group(name: str, policy: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"schedulingPolicy": policy},
    }


@pytest.mark.parametrize(
    ("policy", "size"),
    [
        ({"gang": {"minCount": 4}}, 4),
        ({"basic": {}}, 1),
        ({"gang": {"minCount": "4"}}, 1),
        ({"gang": None}, 1),
        ("odd", 1),
    ],
)
def test_a_gang_needs_its_minimum_and_any_other_group_one_pod(policy: Any, size: int) -> None:
    assert sized(group("ring", policy)) == (Key("team", "ring"), size)


async def test_sizes_are_told_as_they_come_change_and_go(
    fake: FakeApiServer, client: Client
) -> None:
    told: list[tuple[str, str, int | None]] = []
    fake.put(PATH, group("ring", {"gang": {"minCount": 4}}))
    watch = PodGroupWatch(
        client, lambda *change: told.append(change), ServedSettings(look_seconds=0.05)
    )
    async with running(watch.run()):
        await until(lambda: told == [("team", "ring", 4)])
        fake.put(PATH, group("ring", {"gang": {"minCount": 6}}))
        await until(lambda: told[-1] == ("team", "ring", 6))
        fake.remove(PATH, "ring", "team")
        await until(lambda: told[-1] == ("team", "ring", None))
