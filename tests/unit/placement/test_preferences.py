# SPDX-License-Identifier: Apache-2.0
"""The nodes that a pod is told to prefer are those that the extender would rank first."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from policies.placement.model import Model
from policies.placement.occupancy import Gauge
from reconciler.placement.preferring import Preferences
from reconciler.placement.settings import PlacementSettings
from tests.support.builders import policy_set
from tests.support.pools import pool_document
from tests.unit.extender.building import READER, World, raw_pod, shared


class _Release:
    """Preferences over a world of nodes."""

    def __init__(self, most: int = 3) -> None:
        self.world = World()
        settings = PlacementSettings(preferred_nodes=most)
        world = self.world
        self.preferences = Preferences(
            world.model, READER, lambda: world.is_live, settings, world.clock
        )

    def of(self, name: str, **pod: Any) -> Sequence[str]:
        return self.preferences(_pod(name, **pod))


def _pod(name: str, spec: Mapping[str, Any] | None = None, **pod: Any) -> dict[str, Any]:
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    return raw_pod(name, spec={"tolerations": tolerations, **(spec or {})}, **pod)


@pytest.fixture
def release() -> _Release:
    made = _Release()
    for name in "abcde":
        made.world.node(_labelled(shared(name), name))
    return made


def _labelled(raw: Mapping[str, Any], zone: str) -> Mapping[str, object]:
    labels = {**raw["metadata"]["labels"], "zone": zone}
    return {**raw, "metadata": {**raw["metadata"], "labels": labels}}


def test_no_more_nodes_are_named_than_wanted_and_the_best_is_where_the_last_one_went(
    release: _Release,
) -> None:
    first = release.of("p")
    assert len(first) == 3
    assert [release.of(f"q{i}")[0] for i in range(3)] == [first[0]] * 3
    assert release.of("r")[0] != first[0], "four shares are given"


def test_a_pod_that_is_tried_again_is_not_in_its_own_way(release: _Release) -> None:
    chosen = {release.of("p", mib=60_000)[0] for _ in range(3)}
    assert len(chosen) == 1


def test_nodes_that_the_extender_would_refuse_are_not_named(release: _Release) -> None:
    for name in "abc":
        release.world.model.put_gauge(name, Gauge(load=900, loads=(900,)))
    assert set(release.of("p")) == {"d", "e"}


def test_nodes_that_the_scheduler_would_refuse_are_not_named(release: _Release) -> None:
    only = {"nodeSelector": {"zone": "e"}}
    assert list(release.of("p", spec=only)) == ["e"]
    huge = {"resources": {"requests": {"cpu": "1000"}}, "name": "side"}
    pod = _pod("q")
    pod["spec"]["containers"].append(huge)
    assert release.preferences(pod) == ()


@pytest.mark.parametrize("pod", [_pod("cpu", count=0), _pod("x", uid=""), {}, {"spec": []}])
def test_pods_that_nothing_is_known_for_prefer_nothing(
    release: _Release, pod: dict[str, Any]
) -> None:
    assert release.preferences(pod) == ()


def test_an_old_picture_prefers_nothing(release: _Release) -> None:
    release.world.is_live = False
    assert release.of("p") == ()


def test_a_pod_that_is_not_bound_in_time_counts_nowhere_any_more(release: _Release) -> None:
    full = [release.of(f"p{i}", mib=60_000)[0] for i in range(5)]
    assert len(set(full)) == 5
    assert release.of("q", mib=60_000) == ()
    release.world.clock.now += 61
    assert len(release.of("q", mib=60_000)) == 3


def test_a_fault_of_our_own_stops_no_release(
    release: _Release, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Model, "rank", fail)
    with caplog.at_level(logging.ERROR):
        assert release.of("p") == ()
    assert "released without a preference" in caplog.text


@pytest.mark.parametrize("strategy", ["Pack", "Spread"])
def test_the_nodes_of_a_pool_are_preferred_as_its_document_says(strategy: str) -> None:
    made = _Release()
    for name in "abc":
        made.world.node(_labelled(shared(name), name))
    made.world.model.set_policies(
        policy_set(pool_document("all", f"{{strategy: {strategy}}}", selector="{}"))
    )
    chosen = [made.of(f"p{i}")[0] for i in range(3)]
    assert len(set(chosen)) == (1 if strategy == "Pack" else 3)
