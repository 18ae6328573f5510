# SPDX-License-Identifier: Apache-2.0
"""On which board of a node and where on it MIG instances may lie.

Labels tell how many instances of each profile a node has, not on which GPU; so a layout that the
boards' placement tables allow is assumed. What is free of it must not be here.
Source: `nvidia-smi mig -lgipp`, as the catalog has it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from policies.vendors import MigProduct, MigShape


class Instance(NamedTuple):
    """A MIG instance: board, profile, and the memory slices `start` to `start + size`."""

    board: int
    profile: str
    start: int
    size: int


def starts_of(shapes: Sequence[MigShape], board: MigProduct) -> tuple[int, ...] | None:
    """Return where on one board instances of these shapes can lie together; None if they cannot."""
    if sum(shape.compute_slices for shape in shapes) > board.compute_slices:
        return None
    for shape in set(shapes):
        if shapes.count(shape) > shape.max_per_gpu:
            return None
    # Large ones have few places, so they choose first; the answer is in the order of the question.
    order = sorted(range(len(shapes)), key=lambda index: -shapes[index].size)
    found = _search([shapes[index] for index in order], 0)
    if found is None:
        return None
    starts = dict(zip(order, found, strict=True))
    return tuple(starts[index] for index in range(len(shapes)))


def _search(shapes: Sequence[MigShape], taken: int) -> tuple[int, ...] | None:
    """Return starts beside the slices that are taken (bits). At most eight deep."""
    if not shapes:
        return ()
    shape = shapes[0]
    for start in shape.starts:
        slices = ((1 << shape.size) - 1) << start
        if not taken & slices:
            rest = _search(shapes[1:], taken | slices)
            if rest is not None:
                return (start, *rest)
    return None


def lay_out(counts: Mapping[str, int], board: MigProduct, boards: int) -> tuple[Instance, ...]:
    """Return so many instances of each profile on so many boards of one kind, board by board.

    Alike on each board where that is possible, else one board filled after the other, large
    instances first. Instances that no board has a place for are left out.
    """
    shapes = [shape for shape in board.shapes if counts.get(shape.name, 0) > 0]
    shapes.sort(key=lambda shape: -shape.size)
    left = {shape.name: counts[shape.name] for shape in shapes}
    alike = _alike(shapes, left, boards)
    if alike and starts_of(alike, board) is not None:
        chosen = [alike] * boards
    else:
        chosen = [_filled(shapes, left, board) for _ in range(boards)]
    return tuple(
        Instance(index, shape.name, start, shape.size)
        for index, on_board in enumerate(chosen)
        for shape, start in zip(on_board, starts_of(on_board, board) or (), strict=True)
    )


def _alike(
    shapes: Sequence[MigShape], counts: Mapping[str, int], boards: int
) -> list[MigShape] | None:
    """Return what each board has if all have the same; None if they cannot."""
    if boards < 1 or any(count % boards for count in counts.values()):
        return None
    each = [shape for shape in shapes for _ in range(counts[shape.name] // boards)]
    return each if len(each) <= sum(shape.max_per_gpu for shape in shapes) else None


def _filled(shapes: Sequence[MigShape], left: dict[str, int], board: MigProduct) -> list[MigShape]:
    """Return what one board holds of what is left, and take that away from it."""
    chosen: list[MigShape] = []
    for shape in shapes:
        while left[shape.name] and starts_of([*chosen, shape], board) is not None:
            chosen.append(shape)
            left[shape.name] -= 1
    return chosen
