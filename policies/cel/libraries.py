# SPDX-License-Identifier: Apache-2.0
"""The libraries that the engine brings along, for the reference; those of Sluice: functions.py.

Versions are those of Kubernetes 1.37 (apiserver `pkg/cel/environment/base.go`).
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Library:
    """A library and the calls it offers, as one writes them."""

    name: str
    calls: tuple[str, ...]


LIBRARIES: Final = (
    Library(
        "Standard",
        (
            *("has(a.b)", "size(x)", "x in list", "key in map", "type(x)", "dyn(x)"),
            *("list.all(x, p)", "list.exists(x, p)", "list.exists_one(x, p)"),
            *("list.filter(x, p)", "list.map(x, e)", "list.map(x, p, e)"),
            *("s.contains(s)", "s.startsWith(s)", "s.endsWith(s)", "s.matches(re)"),
            *("int(x)", "uint(x)", "double(x)", "string(x)", "bytes(x)", "bool(x)"),
            *("timestamp(s)", "duration(s)", "t.getFullYear()", "t.getHours()", "d.getSeconds()"),
        ),
    ),
    Library(
        "Strings",
        (
            *("s.charAt(int)", "s.format(list)", "s.indexOf(s[, int])", "s.lastIndexOf(s[, int])"),
            *("list.join([s])", "s.lowerAscii()", "s.upperAscii()", "strings.quote(s)"),
            *("s.replace(s, s[, int])", "s.split(s[, int])", "s.substring(int[, int])"),
            "s.trim()",
        ),
    ),
    Library(
        "Sets",
        ("sets.contains(list, list)", "sets.equivalent(list, list)", "sets.intersects(list, list)"),
    ),
    Library(
        "Lists",
        (
            *("list.distinct()", "list.flatten()", "list.reverse()", "list.slice(int, int)"),
            *("list.sort()", "list.sortBy(x, e)", "lists.range(int)"),
        ),
    ),
    Library(
        "Optional values",
        (
            *("a.?b", "a[?k]", "[?o]", "{?k: o}", "optional.of(x)", "optional.none()"),
            *("optional.ofNonZeroValue(x)", "o.hasValue()", "o.value()", "o.or(o)"),
            *("o.orValue(x)", "o.optMap(x, e)", "o.optFlatMap(x, o)", "list.first()"),
            "list.last()",
        ),
    ),
    Library(
        "Two-variable comprehensions",
        (
            *("m.all(k, v, p)", "m.exists(k, v, p)", "m.existsOne(k, v, p)"),
            "m.transformList(k, v[, p], e)",
        ),
    ),
)
