# SPDX-License-Identifier: Apache-2.0
"""What is known of GPUs: names, and the shapes into which MIG cuts each board."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, pairwise

import pytest

from policies.model.labels import Expression, Operator
from policies.vendors import Form, MigProduct, MigShape, Vendor
from policies.vendors.vendor import MIG_PROFILE
from tests.support.builders import catalog

VENDORS = pytest.mark.parametrize("vendor", catalog().vendors, ids=lambda v: v.name)
BOARDS = pytest.mark.parametrize("board", catalog().mig_products, ids=lambda b: b.family)


@VENDORS
def test_every_vendor_knows_its_own_whole_device(vendor: Vendor) -> None:
    found = catalog().classify(vendor.whole)

    assert found is not None
    assert (found.form, found.vendor) == (Form.WHOLE, vendor.name)
    assert catalog().vendor(vendor.name) is vendor
    assert vendor.whole.lower().startswith(catalog().gpu_prefixes)


@VENDORS
def test_every_vendor_knows_nothing_of_other_names(vendor: Vendor) -> None:
    others = [v.whole for v in catalog().vendors if v is not vendor]

    assert all(vendor.classify(name) is None for name in [*others, "cpu", "", "gpu"])


@pytest.mark.parametrize(
    ("name", "form", "profile"),
    [
        ("nvidia.com/gpu", Form.WHOLE, None),
        ("nvidia.com/gpu.shared", Form.SHARED, None),
        ("nvidia.com/mig-1g.10gb", Form.MIG, "1g.10gb"),
        ("nvidia.com/mig-1g.10gb.me", Form.MIG, "1g.10gb+me"),
        ("nvidia.com/mig-1g.24gb.me.all", Form.MIG, "1g.24gb+me.all"),
        ("nvidia.com/mig-1g.10gb.shared", Form.MIG_SHARED, "1g.10gb"),
        ("nvidia.com/mig-1g.10gb.me.shared", Form.MIG_SHARED, "1g.10gb+me"),
        ("nvidia.com/mig-1g", Form.UNKNOWN, None),
        ("nvidia.com/mig-", Form.UNKNOWN, None),
        ("nvidia.com/GPU", Form.UNKNOWN, None),
        ("NVIDIA.com/gpu", Form.UNKNOWN, None),
        ("nvidia.com.gpu", Form.UNKNOWN, None),
        ("nvidia.com/gpumem", Form.UNKNOWN, None),
        ("nvidia.com/", Form.UNKNOWN, None),
        ("requests.nvidia.com/gpu", Form.UNKNOWN, None),
        ("alpha.kubernetes.io/nvidia-gpu", Form.UNKNOWN, None),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", Form.UNKNOWN, None),
        ("volcano.sh/vgpu-number", Form.UNKNOWN, None),
        ("koordinator.sh/gpu-core", Form.UNKNOWN, None),
        ("huawei.com/Ascend910B", Form.UNKNOWN, None),
        ("gpu.intel.com/i915_monitoring", Form.UNKNOWN, None),
    ],
)
def test_a_gpu_name_is_told_apart(name: str, form: Form, profile: str | None) -> None:
    found = catalog().classify(name)

    assert found is not None
    assert (found.resource, found.form, found.mig_profile) == (name, form, profile)


@pytest.mark.parametrize(
    "name",
    ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "", "rdma/hca"],
)
def test_other_resources_have_nothing_to_do_with_gpus(name: str) -> None:
    assert catalog().classify(name) is None


def test_the_memory_of_names_does_not_grow_with_what_users_think_up() -> None:
    found = catalog()
    for index in range(5000):
        assert found.classify(f"nvidia.com/made-up-{index}") is not None

    assert len(found._names) <= 4096


# A100 40 and 80 GB, H100 80 and 94 GB, H200 and A30, as nvidia-smi lists them: name, compute
# slices, memory slices, how many to a GPU, id, and the memory slices at which one may begin.
SEVEN = [
    ("1g", 1, 1, 7, 19, (0, 1, 2, 3, 4, 5, 6)),
    ("1g+me", 1, 1, 1, 20, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.double", 1, 2, 4, 15, (0, 2, 4, 6)),
    ("2g", 2, 2, 3, 14, (0, 2, 4)),
    ("3g", 3, 4, 2, 9, (0, 4)),
    ("4g", 4, 4, 1, 5, (0,)),
    ("7g", 7, 8, 1, 0, (0,)),
]
FOUR = [
    ("1g", 1, 1, 4, 14, (0, 1, 2, 3)),
    ("1g+me", 1, 1, 1, 21, (0, 1, 2, 3)),
    ("2g", 2, 2, 2, 5, (0, 2)),
    ("2g+me", 2, 2, 1, 6, (0, 2)),
    ("4g", 4, 4, 1, 0, (0,)),
]
BOARD_SHAPES = {
    "NVIDIA-A100-SXM4-40GB": (
        SEVEN,
        ["1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"],
        [4864, 4864, 9856, 9856, 19968, 19968, 40192],
    ),
    "NVIDIA-A100-SXM4-80GB": (
        SEVEN,
        ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"],
        [9856, 9856, 19968, 19968, 40192, 40192, 80384],
    ),
    "NVIDIA-H100-80GB-HBM3": (
        SEVEN,
        ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"],
        [9984, 9984, 20090, 20090, 40448, 40448, 81152],
    ),
    "NVIDIA-H100-NVL": (
        SEVEN,
        ["1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"],
        None,
    ),
    "NVIDIA-H200": (
        SEVEN,
        ["1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"],
        None,
    ),
    "NVIDIA-A30": (
        FOUR,
        ["1g.6gb", "1g.6gb+me", "2g.12gb", "2g.12gb+me", "4g.24gb"],
        [5949, 5949, 11970, 11970, 24002],
    ),
}


def _board(product: str) -> MigProduct:
    return next(b for b in catalog().mig_products if product in b.products)


def _current(board: MigProduct) -> list[MigShape]:
    """Return the shapes less the names that only old drivers gave them."""
    by_id = {shape.gi_profile_id: shape for shape in reversed(board.shapes)}
    return [shape for shape in board.shapes if by_id[shape.gi_profile_id] is shape]


@pytest.mark.parametrize("product", BOARD_SHAPES)
def test_a_boards_shapes_are_those_that_nvidia_lists(product: str) -> None:
    rows, names, memories = BOARD_SHAPES[product]
    shapes = _current(_board(product))

    assert [s.name for s in shapes] == names
    assert [
        (s.compute_slices, s.size, s.max_per_gpu, s.gi_profile_id, s.starts) for s in shapes
    ] == [row[1:] for row in rows]
    if memories is not None:
        assert [s.memory_mib for s in shapes] == memories


@BOARDS
def test_a_boards_table_is_consistent(board: MigProduct) -> None:
    assert board.products
    assert board.mark in {"V", "D", "I"}
    assert len({shape.name for shape in board.shapes}) == len(board.shapes)
    for shape in board.shapes:
        assert MIG_PROFILE.fullmatch(shape.name)
        assert shape.name.startswith(f"{shape.compute_slices}g.")
        assert all(start + shape.size <= board.memory_slices for start in shape.starts)
        assert shape.max_per_gpu * shape.size <= board.memory_slices
        assert board.shape(shape.name) is shape
    assert board.shape("9g.999gb") is None


def test_no_product_belongs_to_two_boards() -> None:
    products = [name for board in catalog().mig_products for name in board.products]

    assert len(products) == len(set(products))


@BOARDS
def test_usable_memory_is_less_than_the_name_says_and_grows_with_the_shape(
    board: MigProduct,
) -> None:
    known = [(shape, shape.memory_mib) for shape in board.shapes if shape.memory_mib is not None]

    for shape, mib in known:
        gigabytes = int(shape.name.split(".")[1].partition("gb")[0])
        assert 0.85 * gigabytes <= mib / 1024 <= gigabytes
    for (small, less), (large, more) in pairwise(known):
        assert less <= more or small.size >= large.size


Placed = frozenset[tuple[str, int]]


def _layouts(shapes: list[MigShape], most_compute: int) -> set[Placed]:
    """Return every layout that can be reached by adding instances one by one."""
    layouts: set[Placed] = {frozenset()}
    fresh = set(layouts)
    by_name = {shape.name: shape for shape in shapes}
    while fresh:
        fresh = {
            layout | {(shape.name, start)}
            for layout in fresh
            for shape in shapes
            for start in shape.starts
            if _fits(layout, shape, start, by_name, most_compute)
        } - layouts
        layouts |= fresh
    return layouts


def _fits(
    layout: Placed, shape: MigShape, start: int, by_name: dict[str, MigShape], most_compute: int
) -> bool:
    taken = {slot for name, at in layout for slot in range(at, at + by_name[name].size)}
    compute = sum(by_name[name].compute_slices for name, _ in layout)
    same = sum(name == shape.name for name, _ in layout)
    return (
        taken.isdisjoint(range(start, start + shape.size))
        and compute + shape.compute_slices <= most_compute
        and same < shape.max_per_gpu
    )


def _maximal(layouts: set[Placed]) -> set[Placed]:
    grown = {layout - {item} for layout in layouts for item in layout}
    return layouts - grown


@pytest.mark.parametrize(
    ("product", "double", "reachable", "maximal", "kinds"),
    [
        ("NVIDIA-A100-SXM4-40GB", False, 298, 19, 14),
        ("NVIDIA-A100-SXM4-80GB", True, 723, 78, 38),
        ("NVIDIA-H100-80GB-HBM3", True, 723, 78, 38),
        ("NVIDIA-H200", False, 298, 19, 14),
        ("NVIDIA-A30", False, 26, 5, 4),
    ],
)
def test_a_board_can_be_cut_in_as_many_ways_as_is_known(
    product: str, double: bool, reachable: int, maximal: int, kinds: int
) -> None:
    board = _board(product)
    shapes = [
        s
        for s in _current(board)
        if "+" not in s.name and (double or s.size == 1 or s.compute_slices > 1)
    ]
    layouts = _layouts(shapes, board.compute_slices)

    assert len(layouts) == reachable
    assert len(_maximal(layouts)) == maximal
    assert len({tuple(sorted(name for name, _ in found)) for found in _maximal(layouts)}) == kinds


def _attributes() -> Iterator[str]:
    yield ""
    for signs in ("+", "-"):
        for pair in combinations_with_replacement(["me", "gfx"], 2):
            yield f"{signs}{','.join(dict.fromkeys(pair))}"


@pytest.mark.parametrize("attributes", list(_attributes()))
def test_profile_names_may_carry_attributes(attributes: str) -> None:
    assert MIG_PROFILE.fullmatch(f"1g.10gb{attributes}")
    assert MIG_PROFILE.fullmatch(f"1c.3g.40gb{attributes}")


@pytest.mark.parametrize("name", ["", "1g", "0g.10gb", "1g.010gb", "1g.10GB", "1g.10gb+", "g.1gb"])
def test_what_is_no_profile_name_is_none(name: str) -> None:
    assert MIG_PROFILE.fullmatch(name) is None


@pytest.mark.parametrize(
    ("operator", "values", "present", "absent"),
    [
        (Operator.IN, ("a",), True, False),
        (Operator.IN, ("b",), False, False),
        (Operator.NOT_IN, ("a",), False, True),
        (Operator.NOT_IN, ("b",), True, True),
        (Operator.EXISTS, (), True, False),
        (Operator.DOES_NOT_EXIST, (), False, True),
    ],
)
def test_a_requirement_on_a_label_holds_as_in_kubernetes(
    operator: Operator, values: tuple[str, ...], present: bool, absent: bool
) -> None:
    expression = Expression("zone", operator, values)

    assert expression.matches({"zone": "a"}) is present
    assert expression.matches({"other": "a"}) is absent
