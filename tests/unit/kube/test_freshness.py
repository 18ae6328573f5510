# SPDX-License-Identifier: Apache-2.0
"""When the leader's picture is too old to decide on: any of its watches may be the cause."""

from types import SimpleNamespace
from typing import cast

import pytest

from policies.vendors import build_catalog
from reconciler import leading
from reconciler.cluster import LiveCluster
from reconciler.kube.client import Client
from reconciler.kube.elector import Leadership
from reconciler.kube.facts import STALE_AFTER_SECONDS
from reconciler.kube.reflector import Runtime
from reconciler.reclaim.budgets import BudgetWatch
from reconciler.runtime.controller_metrics import ControllerMetrics
from reconciler.runtime.surroundings import Surroundings


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def cluster(clock: Clock) -> LiveCluster:
    return LiveCluster(cast("Client", None), lambda: None, build_catalog(), Runtime(clock))


def test_a_picture_is_fresh_until_its_own_watches_are_out_of_touch(clock: Clock) -> None:
    picture = cluster(clock)
    assert picture.is_fresh
    clock.now += STALE_AFTER_SECONDS + 1
    assert not picture.is_fresh


def test_a_watch_of_others_that_is_out_of_touch_makes_it_stale(clock: Clock) -> None:
    picture, age = cluster(clock), 0.0
    picture.depends_on(lambda: age)
    assert picture.is_fresh
    age = STALE_AFTER_SECONDS + 1
    assert not picture.is_fresh


def test_a_leader_decides_nothing_on_stale_disruption_budgets(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ages = {"budgets": 0.0}
    monkeypatch.setattr(BudgetWatch, "seconds_since_contact", lambda _: ages["budgets"])
    around = SimpleNamespace(
        client=None,
        runtime=Runtime(clock),
        documents=SimpleNamespace(current=lambda: None),
        catalog=build_catalog(),
    )
    led = leading._begin(
        cast("Surroundings", around),
        cast("ControllerMetrics", None),
        cast("Leadership", SimpleNamespace(inherited=())),
    )
    assert led.cluster.is_fresh
    ages["budgets"] = STALE_AFTER_SECONDS + 1
    assert not led.cluster.is_fresh
