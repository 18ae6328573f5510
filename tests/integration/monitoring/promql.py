# SPDX-License-Identifier: Apache-2.0
"""Asks a real Prometheus: values, labels, rules, and what a query is made of."""

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_SECONDS: Final = 10.0
_SELECTORS: Final = {"vectorSelector", "matrixSelector"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric and what is asked of its labels, as PromQL."""

    name: str
    text: str


class Prometheus:
    """The API of a server."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expr: str) -> list[Json]:
        """Return the series that an instant query finds; one that cannot be evaluated fails."""
        found = self._get("query", query=expr)
        if found["resultType"] == "scalar":
            return [{"metric": {}, "value": found["result"]}]
        result: list[Json] = found["result"]
        return result

    def has_number(self, expr: str) -> bool:
        """Tell whether a query finds a value that is a number."""
        return any(math.isfinite(float(each["value"][1])) for each in self.query(expr))

    def label_values(self, metric: str, label: str) -> list[str]:
        """Return what Grafana's label_values(metric, label) offers."""
        found: list[str] = self._get(f"label/{label}/values", **{"match[]": metric})
        return found

    def rules(self) -> list[Json]:
        """Return every rule with its health."""
        groups = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def selectors(self, expr: str) -> set[Selector]:
        """Return every selector of a query, by Prometheus' own parser."""
        return set(_selectors(self._get("parse_query", query=expr)))

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - loopback
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error


def _selectors(tree: Any) -> Iterator[Selector]:
    if isinstance(tree, list):
        for each in tree:
            yield from _selectors(each)
    elif isinstance(tree, dict):
        if tree.get("type") in _SELECTORS:
            parts = [_matcher(each) for each in tree["matchers"] if each["name"] != "__name__"]
            yield Selector(tree["name"], f"{tree['name']}{{{','.join(parts)}}}")
        for each in tree.values():
            yield from _selectors(each)


def _matcher(each: Json) -> str:
    return f"{each['name']}{each['type']}{json.dumps(each['value'])}"
