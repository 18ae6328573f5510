# SPDX-License-Identifier: Apache-2.0
"""What is kept from the garbage collector, and that it is collected in the end."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from reconciler.runtime import collecting
from reconciler.runtime.collecting import let_go_soon, spared
from tests.support.waiting import until


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


async def test_what_is_made_within_is_spared_also_while_it_is_made() -> None:
    async with spared():
        early = Knot()
        await asyncio.sleep(0)
        assert not any(found is early for found in gc.get_objects())
        late = Knot()
    assert not any(found is late for found in gc.get_objects())
    after = Knot()
    assert any(found is after for found in gc.get_objects())


async def test_what_nobody_needs_any_more_is_collected_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collecting, "_LET_GO_SECONDS", 0.0)
    async with spared():
        knot = Knot()
    gone = weakref.ref(knot)
    del knot
    gc.collect()
    assert gone() is not None

    let_go_soon()

    await until(lambda: gone() is None)
    assert gc.get_freeze_count() > 0
