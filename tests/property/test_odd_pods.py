# SPDX-License-Identifier: Apache-2.0
"""Whatever is in a pod, and however pods change, the leader's picture takes it, and plans."""

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import orjson
from hypothesis import given
from hypothesis import strategies as st

from policies.model.keys import CHARGE, GANG_LABEL, GANG_SIZE, NOTICE, QUOTA_GATE, REASON
from policies.quota.planning.plan import plan
from policies.quota.pods import QuotaPod
from reconciler.quota.view import PodViews
from tests.support.builders import Json, catalog, container, pod, rewritten
from tests.support.planning import World, node, tenant

TIME: Final = "2031-05-17T12:00:00Z"
ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 2**63 - 1, 1e308, [], {}, [None], [[]], {"a": None}),
    *("", "x", "9" * 5000, "1e40", "-5", "٣", "[" * 3000, "In", "Gt", "Always"),
    *(TIME, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z"),
    *('{"v":1}', '{"v":1,"parts":{"0":1}}', '{"v":1,"parts":{"1":1e99}}'),
)
CHARGED: Final = {
    "v": 1,
    "tenant": "chat",
    "pool": "",
    "parts": {"1": 1},
    "mib": 0,
    "counts": {},
    "generation": "g",
    "at": 1,
    "exclusive": False,
    "reclaimable": True,
    "borrowed": False,
}
TERM: Final = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
SEEDS: Final = st.integers(0, 2**32)


def template() -> Json:
    """Return a pod with everything in it that is read."""
    made = rewritten(
        pod(
            container(gpus="1"),
            initContainers=[{**container("side", gpus="1"), "restartPolicy": "Always"}],
            ownerReferences=[{"kind": "Job", "name": "j", "uid": "j", "controller": True}],
            labels={GANG_LABEL: "g", "app": "x"},
            annotations={GANG_SIZE: "2"},
            affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [TERM]}}},
            overhead={"cpu": "1"},
            priority=5,
            terminationGracePeriodSeconds=30,
            schedulingGroup={"podGroupName": "x"},
        )
    )
    made["metadata"]["annotations"] |= {
        CHARGE: orjson.dumps(CHARGED).decode(),
        NOTICE: "{}",
        REASON: "Ceiling: x",
    }
    made["status"] = {
        "phase": "Running",
        "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1"}}],
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
    }
    return made


TEMPLATE: Final = template()
SERVERS: Final = frozenset({"uid", "name", "namespace", "resourceVersion"})
"""Fields that the API server alone writes, as they should be."""


def paths(item: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value."""
    pairs = item.items() if isinstance(item, dict) else enumerate(item)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*path, key))


def odd_pod(draw: random.Random, version: int) -> Json:
    """Return one of a few pods as it may be, with up to three values replaced by odd ones."""
    made, uid = deepcopy(TEMPLATE), f"uid-{draw.randrange(6)}"
    server = {"uid": uid, "name": uid, "resourceVersion": str(version), "creationTimestamp": TIME}
    made["metadata"] |= {**server, **({"deletionTimestamp": TIME} if draw.random() < 0.3 else {})}
    made["status"]["phase"] = draw.choice(["Pending", "Running", "Failed"])
    made["spec"]["schedulingGates"] = draw.choice([[], [{"name": QUOTA_GATE}]])
    if draw.random() < 0.5:
        made["spec"]["nodeName"] = draw.choice(["n1", "n9"])
    for _ in range(draw.randrange(4)):
        ways = [p for p in paths(made) if len(p) > 1 and p[1] not in SERVERS]
        *way, last = draw.choice(ways)
        parent: Any = made
        for key in way:
            parent = parent[key]
        parent[last] = deepcopy(draw.choice(ODD))
    return made


@given(SEEDS)
def test_no_pod_ends_the_leadership(seed: int) -> None:
    draw, views = random.Random(seed), PodViews(catalog())  # noqa: S311 - replayable
    world = World([tenant("chat", 4, 8)], [node("n1")])
    for version in range(1, 40):
        view: QuotaPod | None = views.view(odd_pod(draw, version))
        if view is not None:
            world.state.put_pod(view)
        if draw.random() < 0.2:
            world.state.remove_pod(f"uid-{draw.randrange(6)}")
        if draw.random() < 0.3:
            world.now += draw.choice([1, 700])
            for release in plan(world.state, world.now, 5).releases:
                orjson.dumps(release.charge.to_annotation())
                world.state.charge_intent(release.pod.uid, release.charge)
                if draw.random() < 0.5:
                    world.state.settle(release.pod.uid)
    for number in range(6):
        world.state.remove_pod(f"uid-{number}")
    assert not list(world.state.pods())
    assert world.used("chat") == 0
    assert not world.state.queue.tenants
