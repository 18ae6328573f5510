# SPDX-License-Identifier: Apache-2.0
"""A document knows where each of its parts stands, also those that it lacks."""

import pytest

from policies.documents.document import Document, Path, parse_path, path_text
from policies.documents.source import SourceText, parse_documents

TEXT = "a:\n  b: [x, {c: y}]\n"


@pytest.fixture
def document() -> Document:
    return parse_documents(SourceText("f.yaml", TEXT.encode())).documents[0]


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ((), 1, 1),
        (("a",), 2, 3),
        (("a", "b"), 2, 6),
        (("a", "b", 1, "c"), 2, 14),
        (("a", "missing"), 2, 3),
        (("a", "b", 7), 2, 6),
        (("a", "b", 0, "deeper"), 2, 7),
    ],
)
def test_a_value_or_its_nearest_parent_is_found(
    document: Document, path: Path, line: int, column: int
) -> None:
    position = document.position(path)

    assert (position.line, position.column) == (line, column)


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [((), 1, 1), (("a",), 1, 1), (("a", "b"), 2, 3), (("a", "b", 0), 2, 7), (("z",), 1, 1)],
)
def test_a_name_is_found_before_its_value(
    document: Document, path: Path, line: int, column: int
) -> None:
    position = document.key_position(path)

    assert (position.line, position.column) == (line, column)


def test_a_place_in_what_is_no_text_is_its_start(document: Document) -> None:
    position = document.position_in_text(("a", "b"), 5, 5)

    assert (position.line, position.column) == (2, 6)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("spec", "match", "when", 0, "expression"), "spec.match.when[0].expression"),
        (("metadata", "labels", "a.b/c"), 'metadata.labels["a.b/c"]'),
        ((), ""),
    ],
)
def test_a_path_is_written_as_people_write_it(path: Path, text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("text", "path"), [("products[0]", ("products", 0)), ("mig.profile", ("mig", "profile"))]
)
def test_a_path_is_read_as_people_write_it(text: str, path: Path) -> None:
    assert parse_path(text) == path
