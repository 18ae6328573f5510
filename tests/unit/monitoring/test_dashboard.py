# SPDX-License-Identifier: Apache-2.0
"""The dashboard is one that any Grafana can show."""

import json

import pytest

from reconciler.monitoring.dashboard.catalog import ROWS, VARIABLES, dashboard_text
from reconciler.monitoring.dashboard.panels import Panel

DASHBOARD = json.loads(dashboard_text())
PANELS = [panel for row in ROWS for panel in row.panels]


def test_every_panel_is_there_once_under_its_heading() -> None:
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    expected = [title for row in ROWS for title in (row.title, *(p.title for p in row.panels))]
    assert titles == expected
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(numbers) == len(set(numbers))


def test_no_two_panels_lie_on_one_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_only_panels_that_every_grafana_has_are_used() -> None:
    kinds = {panel["type"] for panel in DASHBOARD["panels"]}
    assert kinds == {"row", "stat", "timeseries", "table"}


@pytest.mark.parametrize("panel", PANELS, ids=[panel.title for panel in PANELS])
def test_every_series_has_a_name(panel: Panel) -> None:
    assert all(query.legend for query in panel.queries)
    assert len({query.legend for query in panel.queries}) == len(panel.queries)


def test_whoever_looks_can_choose_a_source_tenants_and_models() -> None:
    names = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert names == ["datasource", *(variable.name for variable in VARIABLES)]
    queries = [query.expr for panel in PANELS for query in panel.queries]
    for variable in VARIABLES:
        assert any(f"${variable.name}" in expr for expr in queries)
    sources = {str(panel.get("datasource")) for panel in DASHBOARD["panels"] if "targets" in panel}
    assert sources == {str({"type": "prometheus", "uid": "${datasource}"})}
