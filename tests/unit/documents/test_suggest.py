# SPDX-License-Identifier: Apache-2.0
"""Suggestions name the nearest known name, and none where none is near."""

import pytest

from policies.documents.suggest import closest, did_you_mean

KNOWN = ["Enforce", "Warn", "Audit", "h100-1g.10gb", "h100-2g.20gb"]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("enforce", "Enforce"),
        ("Enforced", "Enforce"),
        ("h100-1g10gb", "h100-1g.10gb"),
        ("AUDIT", "Audit"),
        ("zebra", None),
        ("", None),
    ],
)
def test_the_closest_known_name_is_found(word: str, found: str | None) -> None:
    assert closest(word, KNOWN) == found


def test_the_question_quotes_the_name() -> None:
    assert did_you_mean("warm", KNOWN) == 'did you mean "Warn"?'
    assert did_you_mean("zebra", KNOWN) is None


def test_a_word_longer_than_any_name_is_not_compared() -> None:
    assert closest("a" * 1_000_000, ["a" * 63]) is None
