# SPDX-License-Identifier: Apache-2.0
"""The annotations of nodes: read with care, written seldom."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from policies.telemetry.classes import INFERENCE, TRAINING
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample, Subject
from policies.telemetry.views import NodeTelemetry
from reconciler.kube.client import JsonObject
from reconciler.kube.errors import ForbiddenError, NotFoundError
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import Target
from reconciler.telemetry.annotations import Annotations, Writer, WriterSettings
from reconciler.telemetry.nodes import MemoryNote, TelemetryNode, node_view, read_note
from reconciler.telemetry.store import TelemetryStore
from tests.support.telemetry import LIMITS, NOW, Clock, Taken

_NOTE = {
    "gpu-scheduler/memory-used": "30000",
    "gpu-scheduler/memory-total": "81559",
    "gpu-scheduler/updated-at": "2027-01-15T08:00:00Z",
}


def test_a_note_is_three_annotations_in_mib_and_rfc_3339() -> None:
    assert read_note(_NOTE) == MemoryNote(30_000, 81_559, NOW)
    offset = _NOTE | {"gpu-scheduler/updated-at": "2027-01-15T09:00:00.5+01:00"}
    assert read_note(offset) == MemoryNote(30_000, 81_559, NOW + 0.5)


@pytest.mark.parametrize("key", list(_NOTE))
@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "-1",
        "1e4",
        "NaN",
        "30Gi",
        "٣",
        "9" * 30,
        "yesterday",
        "2027-01-15T08:00:00",
        30_000,
    ],
)
def test_a_note_that_is_not_well_formed_is_none(key: str, value: object) -> None:
    assert read_note({**_NOTE, key: value}) is None


def test_more_used_than_there_is_is_no_note() -> None:
    assert read_note(_NOTE | {"gpu-scheduler/memory-used": "81560"}) is None


def test_a_node_is_read_whatever_its_fields_hold() -> None:
    view = node_view()
    raw = {"metadata": {"name": "node-a", "uid": "u", "annotations": _NOTE}}
    assert view(raw) == TelemetryNode("node-a", "u", TRAINING, MemoryNote(30_000, 81_559, NOW))
    labels = {"sluice.dev/sampling": "inference", "x": None}
    assert view({"metadata": {"name": "b", "labels": labels}}).sampling is INFERENCE
    assert view({}).note is None
    assert view({"metadata": {"annotations": "none"}}).note is None


async def test_as_a_source_they_tell_the_memory_of_a_node_and_no_load() -> None:
    node = TelemetryNode("node-a", "u", TRAINING, MemoryNote(30_000, 81_559, NOW - 100))
    taken, clock = Taken(), Clock()
    source = Annotations(lambda: [node, replace(node, name="node-b", note=None)])
    await source.read({"node-a", "node-b"}, taken)
    store = TelemetryStore(
        lambda _: LIMITS, whole_nodes=replace(LIMITS, max_age_seconds=300), clock=clock
    )
    store.put(taken.samples)
    view = store.node("node-a")
    assert (view.memory_used_mib, view.memory_total_mib, view.load()) == (30_000, 81_559, None)
    clock.now += 206
    assert store.node("node-a").memory_used_mib is None


@dataclass
class _Cluster:
    """Nodes as their watch shows them, and a client that writes into them."""

    nodes: dict[str, TelemetryNode] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    writes: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.store = TelemetryStore(lambda _: LIMITS, clock=self.clock)

    async def apply(
        self, target: Target, body: JsonObject, *, field_manager: str, force: bool = True
    ) -> JsonObject:
        """Do as the API server and the watch do."""
        assert (field_manager, force) == ("sluice-telemetry", True)
        if self.error is not None:
            raise self.error
        metadata: Any = body["metadata"]
        self.writes.append((target.name, metadata))
        note = read_note(metadata["annotations"])
        self.nodes[target.name] = replace(self.nodes[target.name], note=note)
        return body

    def use(self, node: str, used: float, total: float = 80_000) -> None:
        """Have a node's one card tell its memory now."""
        self.nodes.setdefault(node, TelemetryNode(node, f"uid-{node}", TRAINING))
        subject = Subject(node, f"GPU-{node}", 0)
        for quantity, value in ((Quantity.MEMORY_USED, used), (Quantity.MEMORY_TOTAL, total)):
            self.store.put([Sample(quantity, subject, value, self.clock.now)])

    def writer(self, **settings: float) -> Writer:
        """Return a writer of this cluster."""
        made = WriterSettings(**settings)  # type: ignore[arg-type]  # all of them are numbers
        runtime = Runtime(clock=self.clock)
        return Writer(self, self.nodes.values, self.store.node, made, runtime)


async def test_what_is_known_is_written_with_the_time_of_the_sample() -> None:
    cluster = _Cluster()
    cluster.use("node-a", 30_000.4)
    cluster.clock.now += 3
    await cluster.writer().write(10)
    annotations = {
        "gpu-scheduler/memory-used": "30000",
        "gpu-scheduler/memory-total": "80000",
        "gpu-scheduler/updated-at": "2027-01-15T08:00:00Z",
    }
    assert cluster.writes == [
        ("node-a", {"name": "node-a", "uid": "uid-node-a", "annotations": annotations})
    ]


async def test_a_node_is_written_on_change_beyond_the_threshold_and_no_sooner_than_allowed() -> (
    None
):
    cluster = _Cluster()
    writer = cluster.writer(threshold=0.02, node_seconds=10)
    written = []
    for used in (30_000, 31_000, 40_000, 50_000, 50_000, 50_000):
        cluster.use("node-a", used)
        written.append(await writer.write(10))
        cluster.clock.now += 6
    # First, below the threshold, beyond it, too soon, late enough, no change.
    assert written == [1, 0, 1, 0, 1, 0]


async def test_a_value_that_stays_is_written_again_before_readers_take_it_for_stale() -> None:
    cluster = _Cluster()
    writer = cluster.writer(refresh_seconds=120)
    writes = 0
    for _ in range(61):
        cluster.use("node-a", 30_000)
        writes += await writer.write(10)
        cluster.clock.now += 10
    assert writes == 6


async def test_what_has_become_unknown_is_not_written() -> None:
    cluster = _Cluster()
    writer = cluster.writer()
    cluster.use("node-a", 30_000)
    await writer.write(10)
    cluster.clock.now += 600
    assert await writer.write(10) == 0
    cluster.nodes["node-b"] = TelemetryNode("node-b", "u", TRAINING)
    assert await writer.write(10) == 0


async def test_notes_of_others_are_not_copied_as_news() -> None:
    cluster = _Cluster()
    cluster.nodes["node-a"] = TelemetryNode("node-a", "u", TRAINING, MemoryNote(1, 80_000, NOW))
    cluster.store.put(
        [
            Sample(Quantity.MEMORY_USED, Subject("node-a"), 1, NOW),
            Sample(Quantity.MEMORY_TOTAL, Subject("node-a"), 80_000, NOW),
        ]
    )
    cluster.clock.now += 3
    assert cluster.store.node("node-a").memory_used_mib == 1
    assert await cluster.writer(refresh_seconds=1, node_seconds=1).write(10) == 0


async def test_a_round_writes_no_more_than_its_budget_and_starves_nobody() -> None:
    cluster = _Cluster()
    writer = cluster.writer(node_seconds=10)
    for step in range(60):
        for number in range(100):
            cluster.use(f"node-{number}", 20_000 * (step % 2 + 1))
        assert await writer.write(7) <= 7
        cluster.clock.now += 1
    counts = [sum(name == f"node-{number}" for name, _ in cluster.writes) for number in range(100)]
    assert len(cluster.writes) == 60 * 7
    assert max(counts) - min(counts) <= 2


async def test_a_large_cluster_in_which_all_changes_is_written_at_a_bounded_rate_and_in_time() -> (
    None
):
    cluster, names = _Cluster(), [f"node-{number}" for number in range(1_200)]
    at: dict[str, list[float]] = {name: [] for name in names}
    seconds = 0

    async def tick(_: float) -> None:
        nonlocal seconds
        assert len(cluster.writes) <= 20, "a second"
        for name, _metadata in cluster.writes:
            at[name].append(cluster.clock.now)
        cluster.writes.clear()
        seconds += 1
        cluster.clock.now += 1
        if seconds == 130:
            raise TimeoutError
        if seconds % 10 == 0:
            change(seconds)

    def change(second: int) -> None:
        for name in names:
            cluster.use(name, 20_000 * (second // 10 % 2 + 1))

    change(0)
    runtime = Runtime(clock=cluster.clock, sleep=tick)
    with pytest.raises(TimeoutError):
        await Writer(
            cluster, cluster.nodes.values, cluster.store.node, WriterSettings(), runtime
        ).run()
    for times in at.values():
        apart = [later - earlier for earlier, later in pairwise((NOW, *times))]
        assert len(times) >= 2
        assert max(apart) <= 121, "readers take what is 5 minutes old for stale"
        assert min(apart[1:]) >= 10


@pytest.mark.parametrize("error", [NotFoundError("gone"), ForbiddenError("no", reason="Forbidden")])
async def test_a_refused_write_is_tried_again_later_and_logged_once(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = _Cluster(error=error)
    writer = cluster.writer()
    for _ in range(5):
        cluster.use("node-a", 30_000)
        cluster.use("node-b", 30_000)
        await writer.write(10)
        cluster.clock.now += 5
    assert len(caplog.records) == isinstance(error, ForbiddenError)
    cluster.error = None
    cluster.clock.now += 5
    cluster.use("node-a", 30_000)
    assert await writer.write(10) == 2
    assert [name for name, _ in cluster.writes] == ["node-a", "node-b"]


@pytest.mark.parametrize(
    "settings",
    [{"node_seconds": 0}, {"writes_a_second": 0}, {"threshold": 1}, {"concurrency": 0}],
)
def test_settings_that_would_never_or_always_write_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="writer"):
        WriterSettings(**settings)  # type: ignore[arg-type]  # all of them are numbers


def test_a_view_without_cards_is_none_of_nodes() -> None:
    assert NodeTelemetry("node-a").card(index=0) is None
