# SPDX-License-Identifier: Apache-2.0
"""What GPUs come to: given out, fragmented, stranded."""

from collections.abc import Iterable

import pytest

from policies.cluster.nodes import read_node
from policies.placement.figures import FiguresTable, NodeFigures, by_model, node_figures
from policies.placement.pods import PodReader
from tests.controlplane import nodes
from tests.support.builders import GPU, MIG, SHARED, catalog
from tests.support.fleets import Json, example, fleet, pod, ready


def figures(*items: Json) -> NodeFigures:
    (found,) = fleet(items).figures()
    return found


def test_shares_and_instances_come_to_parts_of_gpus() -> None:
    node = ready(nodes.time_sliced("a", count=2, replicas=4))
    found = figures(node, pod("p", "a", {SHARED: 3}))
    assert (found.capacity_milli, found.allocated_milli) == (2000, 750)
    cut = figures(ready(nodes.mig_mixed("a")), pod("p", "a", {MIG: 1}))
    assert cut.allocated_milli == 125


def test_everything_given_out_is_the_whole_capacity() -> None:
    node = ready(nodes.time_sliced("a", count=1, replicas=3))
    found = figures(node, *(pod(f"p{i}", "a", {SHARED: 1}) for i in range(3)))
    assert found.allocated_milli == found.capacity_milli == 1000


@pytest.mark.parametrize(
    ("pods", "stranded"),
    [
        ([], 0),
        ([("p", 3, 1000)], 0),  # a share is free, and with it the memory
        ([("p", 4, 1000)], 81559 - 4 * 1000),
        ([("p", 2, 1000), ("q", 2, 0)], 81559 - 2 * 1000 - 81559 * 2 // 4),
        ([("p", 4, 0)], 0),
        ([("p", 4, 30000)], 0),  # more is stated than there is
    ],
)
def test_memory_is_stranded_on_cards_without_a_free_share(
    pods: Iterable[tuple[str, int, int]], stranded: int
) -> None:
    node = ready(nodes.time_sliced("a", count=1, replicas=4))
    placed = [pod(name, "a", {SHARED: count}, mib=mib) for name, count, mib in pods]
    assert figures(node, *placed).stranded_mib == stranded


def test_memory_is_stranded_on_whole_cards_and_on_mig_instances_too() -> None:
    whole = figures(ready(nodes.whole("a", count=2)), pod("p", "a", {GPU: 1}, mib=1559))
    assert whole.stranded_mib == 80000
    cut = figures(ready(nodes.mig_mixed("a")), pod("p", "a", {MIG: 1}, mib=984))
    assert cut.stranded_mib == 9000


def test_of_boards_whose_memory_nobody_knows_none_is_stranded() -> None:
    node = ready(nodes.amd("a"))
    found = figures(node, pod("p", "a", {"amd.com/gpu": 8}, mib=1))
    assert found.stranded_mib == 0


def test_models_are_sums_over_nodes_that_share_and_that_do_not() -> None:
    found = by_model(fleet(example()).figures())
    assert tuple(found) == (
        *("AMD_Instinct_MI300X_OAM", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3"),
    )
    h100 = found["NVIDIA-H100-80GB-HBM3"]
    assert (h100.nodes, h100.capacity_milli, h100.allocated_milli) == (3, 23250, 6875)


def test_gpus_of_no_label_are_of_an_unknown_model() -> None:
    node = ready(nodes.cpu("a"))
    node["status"]["allocatable"][GPU] = "1"
    assert figures(node).model == "unknown"


def test_fragmentation_is_what_a_typical_pod_could_not_use() -> None:
    node = ready(nodes.whole("a", count=4))
    found = figures(node, pod("p", "a", {GPU: 3}))
    assert found.fragmented_milli == 1000
    assert by_model([found])[found.model].fragmented_milli == 1000


def test_figures_that_are_kept_are_those_that_are_made_anew() -> None:
    found = fleet(example())
    model, table = found.model, FiguresTable(catalog())

    def all_of() -> tuple[NodeFigures, ...]:
        here = [model.occupancy(name) for name in model.nodes()]
        return tuple(
            table.of(each, model.fragmented_milli(each.node.name)) for each in here if each
        )

    first = all_of()
    assert all(again is before for again, before in zip(all_of(), first, strict=True))
    reader = PodReader(catalog())
    changes = (
        lambda: model.put_pod(reader.read(pod("more", "h100-whole", {GPU: 1}, mib=9))),
        lambda: model.put_pod(reader.read(pod("never", "h100-whole", {GPU: 9}))),
        lambda: model.remove_pod("uid-chat-1"),
        lambda: model.put_node(read_node(ready(nodes.whole("h100-whole", count=4)))),
        lambda: model.put_node(read_node(ready(nodes.whole("h100-whole", nodes.A100)))),
        lambda: list(model.learn()),
    )
    for change in changes:
        change()
        here = [model.occupancy(name) for name in model.nodes()]
        anew = tuple(
            node_figures(each, catalog(), model.fragmented_milli(each.node.name))
            for each in here
            if each
        )
        assert all_of() == anew
    table.keep(["cpu"])
    assert all_of() == anew
