# SPDX-License-Identifier: Apache-2.0
"""A patch turns the one object into the other, as an independent library applies it."""

from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from policies.rewrite.patch import diff
from tests.support.strategies import json_values, unshared

OBJECTS = st.dictionaries(st.text("ab/~", max_size=2), json_values, max_size=4)


@st.composite
def _edited(draw: st.DrawFn, value: Any) -> Any:
    """Return the value with some parts changed; the others are the same Python objects."""
    if not draw(st.booleans()):
        return value
    if isinstance(value, dict):
        kept = {key: draw(_edited(item)) for key, item in value.items() if draw(st.booleans())}
        return {**kept, **draw(OBJECTS)}
    if isinstance(value, list):
        items = [draw(_edited(item)) for item in value if draw(st.booleans())]
        index = draw(st.integers(0, len(items)))
        return [*items[:index], *draw(st.lists(json_values, max_size=2)), *items[index:]]
    return draw(json_values)


def _applied(old: Any, new: Any) -> Any:
    return jsonpatch.apply_patch(unshared(old), unshared(list(diff(old, new))))


@given(OBJECTS.map(unshared), st.data())
def test_a_patch_gives_the_edited_object(old: Any, data: Any) -> None:
    kept = {key: data.draw(_edited(item)) for key, item in old.items()}
    new = {**kept, **data.draw(OBJECTS)}

    assert unshared(_applied(old, new)) == unshared(new)


@given(OBJECTS.map(unshared), OBJECTS.map(unshared))
def test_a_patch_gives_any_other_object(old: Any, new: Any) -> None:
    assert _applied(old, new) == new


@given(OBJECTS.map(unshared))
def test_what_does_not_change_needs_no_patch(old: Any) -> None:
    assert diff(old, old) == ()
    assert diff(old, unshared(old)) == ()
