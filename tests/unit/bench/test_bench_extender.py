# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of the extender measure what they say, and end with a line for programs."""

import json

import orjson
import pytest

from policies.vendors import build_catalog
from tests.bench import extender
from tests.bench.bindings import Bindings
from tests.bench.extender_nodes import whole_nodes
from tests.bench.openb import make_trace, milli_of
from tests.bench.reality import part_of
from tests.bench.thousandths import CardReader, raw_node, raw_pod


@pytest.mark.timeout(240)
def test_a_short_run_ends_with_the_figures_of_both_servers_and_fails_above_what_is_allowed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    short = ["--cycles", "30", "--bare-cycles", "10", "--whole-cycles", "3"]
    assert extender.main([*short, "--allow-p50-ms", "0"]) == 1
    *_, last = capfd.readouterr().out.splitlines()
    report = json.loads(last)
    assert report["bench"] == "extender"
    for case in ("names", "whole", "bare"):
        assert 0 < report[case]["p50_ms"] <= report[case]["p99_ms"]
    for spent in ("filter_cpu_ms", "prioritize_cpu_ms", "event_cpu_ms"):
        assert 0 < report[spent]["p50"] <= report[spent]["p99"]
    assert 1 < report["names"]["passed_mean"] < report["nodes"]


def test_whole_nodes_are_as_large_as_those_of_clusters() -> None:
    for node in whole_nodes(8):
        assert 10_000 < len(orjson.dumps(node)) < 30_000


def test_a_part_of_a_trace_has_its_nodes_and_all_pods_with_gpus() -> None:
    trace = make_trace(60, 200)
    part = part_of(trace, 20, seed=1)
    assert len(part.nodes) == 20
    assert {node.name for node in part.nodes} <= {node.name for node in trace.nodes}
    assert part.asks == tuple(ask for ask in trace.asks if milli_of(ask))
    assert len(part.asks) < len(trace.asks)


def test_thousandths_are_read_as_parts_of_one_card_or_as_whole_cards() -> None:
    trace = part_of(make_trace(60, 400), 20, seed=1)
    reader = CardReader(build_catalog())
    for ask in trace.asks:
        (asked,) = ask.devices
        (read,) = reader.read(raw_pod("p", ask)).wish.ask.devices
        assert (read.count, read.units) == (asked.count, asked.units)


def test_a_node_offers_as_many_thousandths_as_the_trace_says() -> None:
    node = make_trace(5, 5).nodes[0]
    offered = raw_node(node)["status"]["allocatable"]
    assert int(offered["nvidia.com/gpu.shared"]) == sum(
        amount for name, amount in node.allocatable.items() if name.startswith("openb")
    )


def test_a_pod_is_decided_on_when_it_is_bound_or_refused() -> None:
    found = Bindings()
    found.changed("ADDED", _pod("a"))
    assert not found.nodes
    assert not found.refused
    found.changed("MODIFIED", _pod("a", told="no room"))
    assert found.refused == {"a": "no room"}
    found.changed("MODIFIED", _pod("a", node="n"))
    assert (found.nodes, found.refused) == ({"a": "n"}, {})
    found.changed("DELETED", _pod("a", node="n"))
    assert not found.alive


def test_the_first_and_last_of_many_pods_do_not_count_in_the_rate() -> None:
    found = Bindings()
    found.at = {f"p{number}": float(number) for number in range(1, 99)}
    found.at |= {"early": -1000.0, "late": 1000.0}
    assert found.per_second(found.at) == pytest.approx(1.0)


def _pod(name: str, node: str = "", told: str = "") -> dict[str, object]:
    refused = {"type": "PodScheduled", "status": "False", "message": told}
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node} if node else {},
        "status": {"conditions": [refused] if told else []},
    }
