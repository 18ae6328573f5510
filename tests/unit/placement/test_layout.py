# SPDX-License-Identifier: Apache-2.0
"""MIG instances lie where their boards have places for them."""

import pytest

from policies.placement.layout import lay_out, starts_of
from policies.vendors import MigProduct
from tests.support.builders import catalog


def _board(product: str = "NVIDIA-H100-80GB-HBM3") -> MigProduct:
    return next(b for b in catalog().mig_products if product in b.products)


def _starts(*profiles: str) -> tuple[int, ...] | None:
    board = _board()
    shapes = [board.shape(profile) for profile in profiles]
    return starts_of([shape for shape in shapes if shape is not None], board)


@pytest.mark.parametrize(
    ("profiles", "starts"),
    [
        ((), ()),
        (("3g.40gb", "3g.40gb"), (0, 4)),
        (("1g.10gb",) * 7, (0, 1, 2, 3, 4, 5, 6)),
        (("1g.10gb", "3g.40gb", "2g.20gb"), (6, 0, 4)),
        (("7g.80gb",), (0,)),
    ],
)
def test_instances_that_fit_have_places(profiles: tuple[str, ...], starts: tuple[int, ...]) -> None:
    assert _starts(*profiles) == starts


@pytest.mark.parametrize(
    "profiles",
    [
        ("1g.10gb",) * 8,
        ("4g.40gb", "4g.40gb"),
        ("3g.40gb", "3g.40gb", "1g.10gb"),
        ("2g.20gb",) * 4,
        ("1g.10gb+me", "1g.10gb+me"),
        ("7g.80gb", "1g.10gb"),
    ],
)
def test_instances_that_do_not_fit_have_none(profiles: tuple[str, ...]) -> None:
    assert _starts(*profiles) is None


def test_boards_are_alike_where_they_can_be() -> None:
    found = lay_out({"3g.40gb": 2, "2g.20gb": 2}, _board(), 2)
    assert [(i.board, i.profile, i.start) for i in found] == [
        (0, "3g.40gb", 0),
        (0, "2g.20gb", 4),
        (1, "3g.40gb", 0),
        (1, "2g.20gb", 4),
    ]


def test_what_no_board_has_a_place_for_is_left_out() -> None:
    found = lay_out({"7g.80gb": 1, "1g.10gb": 9}, _board(), 2)
    assert [i.profile for i in found] == ["7g.80gb", *["1g.10gb"] * 7]
    assert lay_out({"1g.10gb": 3}, _board(), 0) == ()
