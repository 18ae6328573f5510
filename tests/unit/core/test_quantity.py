# SPDX-License-Identifier: Apache-2.0
"""Kubernetes quantities: what the API server takes, what it refuses, and nothing in between."""

from fractions import Fraction

import pytest

from policies.model.quantity import QuantityError, parse_mib, parse_quantity


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0", 0),
        (0, 0),
        ("1", 1),
        (1, 1),
        (1.0, 1),
        ("+1", 1),
        ("-1", -1),
        ("01", 1),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        (0.5, Fraction(1, 2)),
        ("1.50", Fraction(3, 2)),
        ("1e0", 1),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("1e+3", 1000),
        (1e22, 10**22),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("500m", Fraction(1, 2)),
        ("3000m", 3),
        ("1u", Fraction(1, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("9223372036854775807", 2**63 - 1),
        ("0.1", Fraction(1, 10)),
    ],
)
def test_a_quantity_is_read_exactly(written: object, value: Fraction) -> None:
    assert parse_quantity(written) == value


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "1 ",
        " 1",
        "1 GPU",
        "1K",
        "1ki",
        "1KI",
        "1mi",
        "1kk",
        "1_0",
        "1,0",
        "1.1.1",
        ".",
        "+",
        "--1",
        "+-1",
        "+ 1",
        "0x1",
        "0b1",
        "1e",
        "1e1.5",
        "1e1k",
        "NaN",
        "nan",
        "Inf",
        "Infinity",
        "-inf",
        "\u0661",
        "\uff11",
        "1\n",
        "1\u2028",
        "1e99999999999",
        "1e999999999",
        "1e-999999999",
        "9" * 65,
        "9" * 10_000_000,
        None,
        True,
        False,
        [],
        {},
        b"1",
        float("nan"),
        float("inf"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_the_api_server_refuses_is_no_quantity(written: object) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(written)


@pytest.mark.parametrize(
    ("written", "mib"),
    [("8Gi", 8192), ("8G", 7630), ("1", 1), ("0", 0), (1048576, 1), ("1.5Mi", 2)],
)
def test_a_need_of_memory_is_rounded_up_to_whole_mib(written: object, mib: int) -> None:
    assert parse_mib(written) == mib


def test_a_long_value_is_not_repeated_in_full() -> None:
    with pytest.raises(QuantityError) as refused:
        parse_quantity({"secret": "x" * 1000})
    assert len(str(refused.value)) < 100
