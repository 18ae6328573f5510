# SPDX-License-Identifier: Apache-2.0
"""A model's nodes are ranked as the documents say that are served, also after they change."""

from pathlib import Path

from policies.model.placement import Spreading
from policies.placement.scoring import Strategy
from reconciler.placement.documents import follow_documents
from reconciler.runtime.documents import DocumentWatcher, Timing
from reconciler.runtime.loading import Compiler
from tests.support.pools import pool_document
from tests.unit.extender.building import READER, World, raw_pod, shared

_TIMING = Timing(settle_seconds=0.001)


def _write(root: Path, strategy: str) -> None:
    text = pool_document("all", f"{{strategy: {strategy}}}", selector="{}")
    (root / "pools.yaml").write_text(text, encoding="utf-8")


def _strategy(world: World) -> Strategy:
    found = world.model.rank(READER.read(raw_pod("p")).wish, ("a",), "")
    assert found is not None
    return found.strategies["a"]


async def test_what_is_served_counts_and_the_last_good_set_while_newer_ones_are_broken(
    tmp_path: Path,
) -> None:
    world = World()
    world.node(shared("a"))
    watcher = DocumentWatcher(tmp_path, Compiler().load, timing=_TIMING)
    unsubscribe = follow_documents(watcher, world.model)
    assert _strategy(world) is Strategy.PACK, "nothing is loaded yet: the setting holds"
    _write(tmp_path, Spreading.SPREAD)
    await watcher.refresh()
    assert _strategy(world) is Strategy.SPREAD
    _write(tmp_path, "Sprawl")
    await watcher.refresh()
    assert watcher.state.is_broken
    assert _strategy(world) is Strategy.SPREAD
    _write(tmp_path, Spreading.PACK)
    await watcher.refresh()
    assert _strategy(world) is Strategy.PACK
    unsubscribe()
    _write(tmp_path, Spreading.SPREAD)
    await watcher.refresh()
    assert _strategy(world) is Strategy.PACK


async def test_what_was_loaded_before_counts_from_the_start(tmp_path: Path) -> None:
    world = World()
    world.node(shared("a"))
    _write(tmp_path, Spreading.SPREAD)
    watcher = DocumentWatcher(tmp_path, Compiler().load, timing=_TIMING)
    await watcher.refresh()
    follow_documents(watcher, world.model)
    assert _strategy(world) is Strategy.SPREAD
