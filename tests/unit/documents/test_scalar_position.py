# SPDX-License-Identifier: Apache-2.0
"""A place within a text value is found again in the file, however the text is written."""

import string

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policies.documents.source import SourceText, parse_documents


def place(text: str, line: int, column: int) -> tuple[int, int]:
    document = parse_documents(SourceText("f.yaml", text.encode())).documents[0]
    position = document.position_in_text(("a",), line, column)
    return position.line, position.column


def position_of(text: str, marker: str = "X") -> tuple[int, int]:
    """Return line and column, from 1, of the marker in a text."""
    before = text[: text.index(marker)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


@pytest.mark.parametrize(
    "text",
    [
        "a: ab X c\n",
        "a:   ab X c # comment\n",
        "a: ab\n  cd\n\n  X\n",
        "a: 'ab ''X'' c'\n",
        "a: 'ab\n   X'\n",
        'a: "ab \\"X\\" c"\n',
        'a: "a\\tb\\x41\\u00e9\\U0001F600\\\\ X"\n',
        'a: "a \\\n   \\ X"\n',
        'a: "a\\n\\r\\N\\L\\P\\_X"\n',
        'a: "a\\x20X"\n',
        "a: |\n  ab\n  c X\n",
        "a: |2\n    ab\n   X\n",
        "a: |\n\n\n  ab\n    X\n",
        "a: >-\n  ab\n  c X\n",
        "a: >- # why\n  ab\n\n  c\n    more X\n",
        "a: >\n  ab é X\n",
        "{a: ab X}\n",
        "b: é\na: éé X\n",
        "a: &x !!str 'ab X'\n",
        "a: !!str\n  # why\n  ab X\n",
        "a: &x >- # why\n  ab\n  X\n",
        "a: &x\n  |\n  ab\n  X\n",
    ],
)
def test_the_marker_is_found_in_every_style(text: str) -> None:
    value = yaml.safe_load(text)["a"]

    assert place(text, *position_of(value)) == position_of(text)


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("a: 1 +\n", 1, 4, (1, 7)),
        ("a: |\n  1 +\n  2\n", 1, 4, (2, 6)),
        ("a: |\n  1 +\n  2\n", 9, 9, (3, 4)),
        ("a: 1 + 1\n", 0, 0, (1, 4)),
        ("a: ''\n", 1, 1, (1, 4)),
        ("a:\n", 1, 1, (1, 3)),
        ("a: |\n  \n", 1, 1, (1, 4)),
    ],
)
def test_a_place_at_the_end_or_outside_is_the_nearest(
    text: str, line: int, column: int, expected: tuple[int, int]
) -> None:
    assert place(text, line, column) == expected


def test_a_place_in_an_alias_is_that_of_its_anchor() -> None:
    assert place("b: &x ab X\na: *x\n", 1, 4) == (1, 10)


WORDS = st.text(string.ascii_letters + string.digits + "&|(){}[].,:#'\"\\ é", max_size=30)


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=5), st.sampled_from(["'", '"', "|", ">", None]))
def test_any_text_dumped_in_any_style_is_found_again(rows: list[str], style: str | None) -> None:
    value = "\n".join([*rows, "X"])
    text = yaml.dump({"a": value}, default_style=style, allow_unicode=True, width=20)
    key = '"a"' if text.startswith('"a"') else "a"
    assume(text.count("X") == 1 and text.lstrip("'").startswith(key))

    assert place(text, *position_of(value)) == position_of(text)
