# SPDX-License-Identifier: Apache-2.0
"""The placement bench obeys the scheduler's rules, and says so when too little is allocated."""

import json
from pathlib import Path
from random import Random
from statistics import fmean
from xml.etree import ElementTree as ET

import pytest

from policies.placement.rooms import Picking
from tests.bench import placement
from tests.bench.contenders import AnyNode, BestFit, Learning, Sluice
from tests.bench.openb import TraceError, arrivals, make_trace, milli_of, read_trace
from tests.bench.picture import Panel, draw
from tests.bench.replay import replay, sampled

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,4096,2,T4\nn2,8000,4096,2,P100\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p1,1000,512,1,500,\np2,1000,512,1,1000,T4\n"
)


def _write(directory: Path, nodes: str = NODES, pods: str = PODS) -> None:
    (directory / "openb_node_list_gpu_node.csv").write_text(nodes, encoding="utf-8")
    (directory / "openb_pod_list_default.csv").write_text(pods, encoding="utf-8")
    (directory / "published_allocation.csv").write_text(
        "workload,policy,seeds,allocated_pct_at_90,allocated_pct_at_100,allocated_pct_at_130\n"
        "openb_pod_list_default,06-FGD,10,89.98,95.23,95.39\n",
        encoding="utf-8",
    )


def chance() -> Random:
    return Random(1)  # noqa: S311 - the same in every run


@pytest.mark.parametrize(
    ("nodes", "found"), [(1, 1), (99, 99), (100, 100), (150, 100), (300, 144), (1213, 497)]
)
def test_as_many_nodes_are_looked_for_as_kube_scheduler_does(nodes: int, found: int) -> None:
    assert sampled(nodes) == found


def test_pods_arrive_until_all_gpus_have_been_asked_for() -> None:
    trace = make_trace(nodes=5, pods=20)
    asked = sum(milli_of(ask) for ask in arrivals(trace, seed=3))
    assert trace.capacity_milli - 8000 < asked <= trace.capacity_milli
    assert list(arrivals(trace, seed=3)) == list(arrivals(trace, seed=3))
    assert list(arrivals(trace, seed=3)) != list(arrivals(trace, seed=4))


@pytest.mark.parametrize("picking", list(Picking))
def test_no_more_is_allocated_than_was_asked(picking: Picking) -> None:
    trace = make_trace(nodes=8, pods=200)
    found = replay(trace, AnyNode(), picking, seed=1)
    assert len(found.percent) == 101
    assert all(0 <= at <= asked for asked, at in enumerate(found.percent))
    assert 0 < found.lost < found.pods


def test_a_seed_gives_the_same_figures_each_time() -> None:
    trace = make_trace(nodes=20, pods=200)
    for make in (BestFit, Sluice, Learning):
        first, second = (
            replay(trace, make(trace, chance()), Picking.SPREAD, seed=2) for _ in range(2)
        )
        assert first == second


def test_models_that_a_pod_demands_are_honoured(tmp_path: Path) -> None:
    _write(tmp_path, pods=PODS.replace("p1,1000,512,1,500,\n", ""))
    trace = read_trace(tmp_path, "default")
    found = replay(trace, Sluice(trace, chance()), Picking.PACKED, seed=1)
    assert found.percent[100] == 50
    assert (found.pods, found.lost) == (4, 2)


def test_a_trace_is_read_with_what_was_published_of_it(tmp_path: Path) -> None:
    _write(tmp_path)
    trace = read_trace(tmp_path, "default")
    assert (len(trace.nodes), len(trace.asks), trace.capacity_milli) == (2, 2, 4000)
    assert trace.published == {"FGD": {90: 89.98, 100: 95.23}}


def test_a_trace_in_which_nothing_is_asked_is_told(tmp_path: Path) -> None:
    _write(tmp_path, pods=PODS.replace(",1,500,", ",0,0,").replace(",1,1000,", ",0,0,"))
    with pytest.raises(TraceError, match="no pod that asks"):
        read_trace(tmp_path, "default")


def test_more_is_allocated_than_by_best_fit_and_than_by_luck() -> None:
    trace = make_trace(nodes=300, pods=3000)
    means = {
        name: fmean(
            replay(trace, make(trace, chance()), picking, seed).percent[100] for seed in range(3)
        )
        for name, (make, picking) in placement.COLUMNS.items()
        if name in ("random", "best-fit", "Sluice", "Sluice, cards spread")
    }
    assert means["Sluice"] > means["best-fit"] + 0.4 > means["random"] + 3
    assert means["Sluice"] > placement.LEAST["synthetic"] - 0.2
    assert means["Sluice, cards spread"] > means["best-fit"]


@pytest.mark.parametrize("nodes", ["sn\nn1\n", NODES.replace("8000", "many"), ""])
def test_a_trace_that_is_none_is_told(tmp_path: Path, nodes: str) -> None:
    _write(tmp_path, nodes=nodes)
    with pytest.raises(TraceError):
        read_trace(tmp_path, "default")


def test_a_directory_without_a_trace_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert placement.main(["--openb", str(tmp_path)]) == 2
    assert "No such file" in capsys.readouterr().err.replace("\n", " ")


def test_a_run_ends_with_its_figures_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "_MADE_NODES", 12)
    monkeypatch.setattr(placement, "_MADE_PODS", 100)
    monkeypatch.setattr(placement, "LEAST", {"synthetic": 101})
    monkeypatch.delenv("SLUICE_OPENB_DIR", raising=False)
    assert placement.main(["--seeds", "2", "--picture", str(tmp_path / "a.svg")]) == 1
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(line["workloads"]["synthetic"]) == list(placement.COLUMNS)
    assert line["short"].keys() == {"synthetic"}
    monkeypatch.setattr(placement, "LEAST", {"synthetic": 1})
    assert placement.main(["--seeds", "1"]) == 0
    ET.fromstring((tmp_path / "a.svg").read_text(encoding="utf-8"))  # noqa: S314 - drawn above


@pytest.mark.parametrize(
    "arguments", [["--seeds", "0"], ["--column", "Sluice", "--picture", "a.svg"]]
)
def test_arguments_that_mean_nothing_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        placement.main(arguments)


def test_pods_that_are_not_scored_take_the_cpu_that_gpus_need(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLUICE_OPENB_DIR", raising=False)
    monkeypatch.setattr(placement, "LEAST", {"synthetic": 80})
    columns = ["--column", "Sluice", "--column", "Sluice, GPU pods only"]
    columns += ["--column", "Sluice, other pods elsewhere"]
    assert placement.main(["--seeds", "1", *columns]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["workloads"]["synthetic"]
    beside, elsewhere = found["Sluice, GPU pods only"], found["Sluice, other pods elsewhere"]
    assert beside["at_100"] < found["Sluice"]["at_100"] - 0.5
    assert elsewhere["at_100"] > found["Sluice"]["at_100"] - 0.5, "a taint keeps them off"


def test_a_picture_has_a_line_for_each_name_and_a_ring_for_each_point() -> None:
    lines = {"<a>": [float(n) for n in range(101)], "b": [float(n) for n in range(101)]}
    text = draw([Panel("x & y", lines, {90: 89.0, 100: 95.0, 80: 60.0})], "published")
    root = ET.fromstring(text)  # noqa: S314 - drawn above
    assert "<a>" in "".join(root.itertext())
    assert text.count("<circle") == 2 + 1
    assert text.count('stroke="#1f6feb"') == 2
