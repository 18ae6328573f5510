# SPDX-License-Identifier: Apache-2.0
"""Raw objects may lack anything and hold anything."""

from typing import Any

import pytest

from reconciler.kube import raw


@pytest.mark.parametrize("item", [{}, {"a": None}, {"a": 7}, {"a": "x"}, {"a": {"b": []}}])
def test_what_is_not_there_reads_as_nothing(item: dict[str, Any]) -> None:
    assert raw.mapping(item, "a", "b") == {}
    assert raw.text(raw.mapping(item, "a"), "b") == ""
    assert raw.strings(item, "a", "b") == {}
    assert list(raw.mappings(item, "a")) == []


def test_what_is_there_is_read() -> None:
    item = {"a": {"b": {"x": "y", "n": 7}, "t": "text"}, "l": [{"name": "one"}, "two", None]}
    assert raw.mapping(item, "a", "b") == {"x": "y", "n": 7}
    assert raw.text(raw.mapping(item, "a"), "t") == "text"
    assert raw.strings(item, "a", "b") == {"x": "y"}
    assert list(raw.mappings(item, "l")) == [{"name": "one"}]
