# SPDX-License-Identifier: Apache-2.0
"""Texts are read strictly, as JSON would be, and every fault has its place."""

from decimal import Decimal

import pytest

from policies.documents.composer import Limits
from policies.documents.source import Parsed, SourceText, parse_documents


def parse(text: str | bytes, limits: Limits | None = None) -> Parsed:
    raw = text.encode() if isinstance(text, str) else text
    return parse_documents(SourceText("f.yaml", raw), limits)


def values(text: str | bytes) -> list[object]:
    parsed = parse(text)
    assert not parsed.problems, parsed.problems
    return [document.value for document in parsed.documents]


def faults(text: str | bytes, limits: Limits | None = None) -> list[str]:
    return [str(problem) for problem in parse(text, limits).problems]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("True", "True"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", "~"),
        ("Null", "Null"),
        ("", None),
        ("010", "010"),
        ("0o10", "0o10"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("+1", "+1"),
        ("-0", 0),
        ("-17", -17),
        ("9223372036854775807", 9223372036854775807),
        ("1e3", 1000),
        ("2.0", 2),
        (".5", ".5"),
        ("5.", "5."),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("12:30:45", "12:30:45"),
        ("2031-12-12", "2031-12-12"),
        ("2031-12-12T08:00:00Z", "2031-12-12T08:00:00Z"),
        ("=", "="),
        ("٣", "٣"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("!!int '7'", 7),
    ],
)
def test_a_scalar_is_read_as_json_would_read_it(written: str, value: object) -> None:
    found = values(f"a: {written}\n")

    assert found == [{"a": value}]
    assert type(found[0]["a"]) is type(value)  # type: ignore[index]  # a mapping, as just seen


def test_a_decimal_keeps_every_digit_that_is_written() -> None:
    assert values("a: 0.1000000000000000000001") == [{"a": Decimal("0.1000000000000000000001")}]


def test_keys_are_text_whatever_they_look_like() -> None:
    assert values("1: a\ntrue: b\nnull: c\n") == [{"1": "a", "true": "b", "null": "c"}]


def test_json_is_read_with_tabs_and_all() -> None:
    assert values('{\n\t"a": [1, 2.5, "x\\u00e9", null, true]\n}') == [
        {"a": [1, Decimal("2.5"), "xé", None, True]}
    ]


def test_a_byte_order_mark_does_not_shift_columns() -> None:
    document = parse(b"\xef\xbb\xbfa: 1").documents[0]

    assert document.position(("a",)).column == 4


def test_documents_that_hold_nothing_are_left_out() -> None:
    assert values("---\n# a comment\n---\na: 1\n---\n") == [{"a": 1}]


def test_an_alias_stands_for_its_anchor() -> None:
    assert values("a: &x {b: 1}\nc: *x\n") == [{"a": {"b": 1}, "c": {"b": 1}}]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 1\nb: 2\na: 3\n", '3:1: error: a: field "a" is written twice, first in line 1'),
        (
            "a:\n- {b: 1, b: 2}\n",
            '2:10: error: a[0].b: field "b" is written twice, first in line 2',
        ),
        ("a: &x {b: 1}\nc: {<<: *x}\n", "2:5: error: c: merge keys (<<) are not supported"),
        ("? [a]\n: 1\n", "1:3: error: a field's name must be text"),
        ("a: !!binary aGk=\n", "1:4: error: a: tag tag:yaml.org,2002:binary is not supported"),
        ("a: !!timestamp 2031-12-12\n", "1:4: error: a: tag tag:yaml.org,2002:timestamp"),
        ("a: !secret x\n", "1:4: error: a: tag !secret is not supported"),
        ("a: !thing {b: 1}\n", '1:4: error: a: tag "!thing" is not supported'),
        ("!!set {a, b}\n", '1:1: error: tag "tag:yaml.org,2002:set" is not supported'),
        ("a: !!int x\n", "1:4: error: a: 'x' is no number"),
        ("a: !!bool yes\n", "1:4: error: a: 'yes' is no bool"),
        ("a: 1e99999\n", "1:4: error: a: the number is out of range"),
        (f"a: {'9' * 5000}\n", "1:4: error: a: the number is out of range"),
        ("a: &x [*x]\n", "1:4: error: a[0]: an alias within its own anchor has no end"),
        ("a: *x\n", "1:4: error: found undefined alias"),
        ("a:\n\tb: 1\n", "2:1: error: a tab cannot indent; use spaces"),
        ("a: b: c\n", '1:5: error: a ":" here would begin a second field'),
        ("a: [1\n", "2:1: error: did not find expected ',' or ']'"),
        ("a: \x00\n", "1:4: error: control character U+0000 may not stand in a document"),
        ("é: \x1b[31m\n", "1:4: error: control character U+001B may not stand in a document"),
        (b"a: 1\n\xc3\xa9\xff: 2\n", "2:2: error: not UTF-8: byte 0xff is no part of a character"),
        ("a: 1".encode("utf-16"), "1:1: error: not UTF-8: byte 0xff"),
    ],
)
def test_a_fault_is_a_problem_with_its_place(text: str | bytes, fault: str) -> None:
    found = faults(text)

    assert len(found) == 1
    assert found[0].startswith(f"f.yaml:{fault}")


def test_a_syntax_fault_hides_no_other_document() -> None:
    parsed = parse("a: 1\n---\nb: [\n---\nc: 2\n---\n\td: 3\n---\ne: 4\n")

    assert [document.value for document in parsed.documents] == [{"a": 1}, {"c": 2}, {"e": 4}]
    assert [problem.line for problem in parsed.problems] == [4, 7]
    assert not parsed.complete
    assert parsed.documents[2].position(("e",)).line == 9


def test_a_fault_that_hides_nothing_leaves_the_file_complete() -> None:
    assert parse("a: 1\na: 2\n").complete


def test_reading_ends_after_too_many_syntax_faults() -> None:
    found = faults("---\n[\n" * 1000)

    assert len(found) == 11
    assert "too many faults of syntax" in found[-1]


def test_aliases_that_multiply_are_bounded() -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    rows += [
        f"{c}: &{c} [{', '.join([f'*{p}'] * 10)}]"
        for p, c in zip("abcdefgh", "bcdefghi", strict=True)
    ]

    assert faults("\n".join(rows)) == [
        "f.yaml:1:1: error: aliases expand to more than 400000 values"
    ]


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "[" * 900, "- " * 5000 + "x"])
def test_nesting_is_bounded(text: str) -> None:
    assert "nest" in faults(text)[0]


def test_nesting_through_aliases_is_bounded() -> None:
    rows = ["a0: &a0 [x]"]
    rows += [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200)]

    assert faults("\n".join(rows)) == ["f.yaml:1:1: error: nested more than 64 levels deep"]


def test_a_file_of_too_many_values_is_refused() -> None:
    assert "more than 100 values in one file" in faults("- x\n" * 200, Limits(values=100))[0]


def test_a_file_that_is_too_big_is_refused_unread() -> None:
    assert faults(b"#" * (4 * 1024 * 1024 + 1)) == [
        "f.yaml:1:1: error: bigger than 4 MiB; split it"
    ]


def test_many_faults_in_one_file_are_cut_off() -> None:
    assert len(faults("a: {" + "b: 1, " * 1000 + "}")) == 100
