# SPDX-License-Identifier: Apache-2.0
"""The patch that leads from one object to another."""

from typing import Any

import jsonpatch
import pytest

from policies.rewrite.patch import diff

A: dict[str, Any] = {"name": "a"}
B: dict[str, Any] = {"name": "b"}


def _list(*items: Any) -> dict[str, Any]:
    return {"list": list(items)}


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        ({}, {}, []),
        ({}, {"a": {}}, [{"op": "add", "path": "/a", "value": {}}]),
        ({"a": None}, {}, [{"op": "remove", "path": "/a"}]),
        ({"a": None}, {"a": {}}, [{"op": "replace", "path": "/a", "value": {}}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": 1}, {"a": 1.0}, [{"op": "replace", "path": "/a", "value": 1.0}]),
        (
            {"nvidia.com/gpu": "1", "a~b": "1"},
            {"nvidia.com/gpu": "2"},
            [
                {"op": "remove", "path": "/a~0b"},
                {"op": "replace", "path": "/nvidia.com~1gpu", "value": "2"},
            ],
        ),
        (_list(A), _list(A, B), [{"op": "add", "path": "/list/1", "value": B}]),
        (_list(A), _list(B, A), [{"op": "add", "path": "/list/0", "value": B}]),
        (_list(A, B), _list(B), [{"op": "remove", "path": "/list/0"}]),
        (_list(A), _list({"name": "c"}), [{"op": "replace", "path": "/list/0/name", "value": "c"}]),
        (_list(A, A), _list(A), [{"op": "remove", "path": "/list/1"}]),
        (_list(None), _list(None, None), [{"op": "add", "path": "/list/1", "value": None}]),
    ],
)
def test_a_patch_is_as_short_as_it_can_be_and_applies(
    old: dict[str, Any], new: dict[str, Any], operations: list[dict[str, Any]]
) -> None:
    assert list(diff(old, new)) == operations
    assert jsonpatch.apply_patch(old, operations) == new


def test_items_are_removed_from_the_end_so_that_each_index_still_holds() -> None:
    operations = diff(_list(A, B, A), _list({"name": "c"}))

    assert [operation["path"] for operation in operations] == [
        "/list/2",
        "/list/1",
        "/list/0",
        "/list/0",
    ]
