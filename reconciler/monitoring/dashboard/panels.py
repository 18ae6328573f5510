# SPDX-License-Identifier: Apache-2.0
"""What a dashboard is made of, as values. How Grafana writes it must not be here."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Panel types that every Grafana has."""

    STAT = "stat"
    TIME_SERIES = "timeseries"
    TABLE = "table"


class Unit(StrEnum):
    """Units as Grafana names them."""

    NUMBER = "short"
    RATIO = "percentunit"
    SECONDS = "s"
    PER_SECOND = "ops"
    MIB = "mbytes"
    CELSIUS = "celsius"
    WATTS = "watt"


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and what its series are called: a template of labels, in a table the column."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture. `width` is of 24 columns, `height` in Grafana's rows."""

    title: str
    kind: Kind
    unit: Unit
    queries: tuple[Query, ...]
    description: str = ""
    width: int = 8
    height: int = 8


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """What people choose by: the values of a label of a metric; `$name` in queries."""

    name: str
    title: str
    metric: str
    label: str


def stat(title: str, expr: str, unit: Unit = Unit.NUMBER) -> Panel:
    """Return a panel of one number."""
    return Panel(title, Kind.STAT, unit, (Query(expr, title),), width=4, height=4)


def lines(
    title: str, expr: str, legend: str, unit: Unit = Unit.NUMBER, description: str = ""
) -> Panel:
    """Return a panel of one query's series over time."""
    return Panel(title, Kind.TIME_SERIES, unit, (Query(expr, legend),), description)
