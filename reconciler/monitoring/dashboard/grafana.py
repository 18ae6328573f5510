# SPDX-License-Identifier: Apache-2.0
"""The dashboard as Grafana imports it: JSON of its classic model, which every version reads.

Source: grafana.com/docs/grafana/latest/visualizations/dashboards/build-dashboards/
view-dashboard-json-model. What is on it must not be here.
"""

from collections.abc import Iterable, Iterator
from string import ascii_uppercase
from typing import Final

from reconciler.monitoring.dashboard.panels import Kind, Panel, Query, Row, Variable

Object = dict[str, object]

_COLUMNS: Final = 24
_SCHEMA_VERSION: Final = 39
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def dashboard(uid: str, title: str, rows: Iterable[Row], variables: Iterable[Variable]) -> Object:
    """Return the dashboard."""
    source: Object = {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
    }
    return {
        "uid": uid,
        "title": title,
        "tags": ["sluice", "gpu"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": [source, *map(_variable, variables)]},
        "panels": list(_placed(rows)),
    }


def _variable(variable: Variable) -> Object:
    return {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": _DATASOURCE,
        "query": f"label_values({variable.metric}, {variable.label})",
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _placed(rows: Iterable[Row]) -> Iterator[Object]:
    """Yield headings and panels from left to right, each line as high as its highest panel."""
    number, top = 0, 0
    for row in rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": top, "w": _COLUMNS, "h": 1},
            "panels": [],
        }
        top += 1
        left, high = 0, 0
        for panel in row.panels:
            if left + panel.width > _COLUMNS:
                left, top, high = 0, top + high, 0
            number += 1
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            yield {"id": number, "gridPos": place, **_panel(panel)}
            left, high = left + panel.width, max(high, panel.height)
        top += high


def _panel(panel: Panel) -> Object:
    targets = [
        _target(panel.kind, query, letter)
        for query, letter in zip(panel.queries, ascii_uppercase, strict=False)
    ]
    common: Object = {
        "type": str(panel.kind),
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "targets": targets,
    }
    defaults: Object = {"unit": str(panel.unit)}
    match panel.kind:
        case Kind.STAT:
            reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
            options: Object = {"reduceOptions": reduced, "graphMode": "area", "colorMode": "none"}
        case Kind.TIME_SERIES:
            defaults["min"] = 0
            options = {
                "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom"},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        case Kind.TABLE:
            options = {"showHeader": True}
            common["transformations"] = _columns(panel.queries)
    return {**common, "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options}


def _target(kind: Kind, query: Query, letter: str) -> Object:
    target: Object = {
        "refId": letter,
        "datasource": _DATASOURCE,
        "expr": query.expr,
        "legendFormat": query.legend,
    }
    if kind is Kind.TABLE:
        return {**target, "format": "table", "instant": True, "range": False}
    return target


def _columns(queries: tuple[Query, ...]) -> list[Object]:
    """Make one table of all queries, with their legends as the names of columns."""
    if len(queries) == 1:
        names = {"Value": queries[0].legend}
    else:
        letters = zip(queries, ascii_uppercase, strict=False)
        names = {f"Value #{letter}": query.legend for query, letter in letters}
    hidden = {"Time": True, "__name__": True}
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}},
    ]
