# SPDX-License-Identifier: Apache-2.0
"""A Settings document becomes the settings, with the safe default for all that it leaves out."""

import pytest

from policies.model.placement import Spreading, SpreadSettings
from policies.model.settings import Budget, QueueSettings, Settings
from tests.unit.documents.loading import COMPLETE, Loader, document, errors, served


def settings(load_texts: Loader, spec: str) -> Settings:
    return served(load_texts(COMPLETE, document("Settings", "cluster", spec))).settings


def test_what_is_left_out_has_the_default(load_texts: Loader) -> None:
    for spec in ("mode: Enforce", "budget: {}", "queue: {}"):
        assert settings(load_texts, spec) == Settings()


def test_the_budget_is_read(load_texts: Loader) -> None:
    found = settings(load_texts, "budget: {perTenant: 4, perNode: 2, perCluster: 20, per: 1h}")

    assert found == Settings(budget=Budget(4, 2, 20, 3600))


def test_a_budget_of_nothing_is_not_one_without_bounds(load_texts: Loader) -> None:
    found = settings(load_texts, "budget: {perTenant: 0}")

    assert found.budget == Budget(per_tenant=0)


def test_how_pods_wait_is_read(load_texts: Loader) -> None:
    spec = "queue: {reserveAfter: 5m, reserveFor: 1h, releaseWithoutNodes: true, gangTimeout: 90s}"

    assert settings(load_texts, spec).queue == QueueSettings(300, 3600, True, 90)


def test_how_nodes_in_no_pool_are_ranked_is_read(load_texts: Loader) -> None:
    found = settings(load_texts, "placement: {strategy: Auto, spreadAbove: 60}")

    assert found.placement == SpreadSettings(Spreading.AUTO, spread_above=600)


@pytest.mark.parametrize("threshold", [-5, 0, 1000])
def test_the_priority_threshold_is_read(load_texts: Loader, threshold: int) -> None:
    found = settings(load_texts, f"priorityThreshold: {threshold}")

    assert found.priority_threshold == threshold


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("budget: {perTenant: -1}", "spec.budget.perTenant: must be at least 0, is -1"),
        ("budget: {perTennant: 1}", 'spec.budget.perTennant: unknown field; did you mean "perTen'),
        ("budget: {per: 10}", "spec.budget.per: must be a duration"),
        ("priorityThreshold: high", "spec.priorityThreshold: must be a whole number"),
        ("priorityThreshold: 3000000000", "spec.priorityThreshold: must be at most 2147483647"),
        ("placement: {}", "spec.placement.strategy: is missing"),
        (
            "placement: {strategy: Spread, spreadAbove: 50}",
            "spec.placement.spreadAbove: does nothing with strategy Spread",
        ),
        ("queue: {gangTimeout: 1s}", "spec.queue.gangTimeout: must be at least 10s, is 1s"),
    ],
)
def test_settings_that_cannot_be_are_refused(load_texts: Loader, spec: str, error: str) -> None:
    found = errors(load_texts(document("Settings", "cluster", spec)))

    assert len(found) == 1, found
    assert error in found[0]
