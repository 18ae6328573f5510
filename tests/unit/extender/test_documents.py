# SPDX-License-Identifier: Apache-2.0
"""An extender by itself follows documents, and its metrics say whether they can be served."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from policies.model.placement import Spreading
from policies.vendors import build_catalog
from reconciler.kube.access import Access
from reconciler.kube.client import Client, Page
from reconciler.kube.resources import Resource, Selection
from reconciler.kube.stream import WatchEvent
from reconciler.placement.settings import PlacementSettings
from reconciler.runtime.metrics import Metrics
from tests.support.pools import pool_document
from tests.support.running import running
from tests.support.waiting import until
from tests.unit.kube.conftest import FixedAccess, client, fake
from webhook.extender.documents import OwnDocuments
from webhook.extender.service import Candidacy, Extender, Surroundings

__all__ = ["client", "fake"]


class _WithoutKinds:
    """A server that serves no kind of document."""

    async def serves(self, resource: Resource) -> bool:
        del resource
        return False

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        raise NotImplementedError

    def watch(
        self, selection: Selection, version: str, *, seconds: float, silence_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        raise NotImplementedError


def _write(root: Path, strategy: str) -> None:
    (root / "pools.yaml").write_text(pool_document("a", f"{{strategy: {strategy}}}"), "utf-8")


def _is_broken(metrics: Metrics) -> bool:
    return metrics.registry.get_sample_value("sluice_policy_set_broken") == 1


def _strategy(own: OwnDocuments) -> Spreading | None:
    policies = own.watcher.current()
    placement = policies.pools["a"].placement if policies is not None else None
    return placement.strategy if placement is not None else None


async def test_documents_are_followed_and_broken_ones_are_told_while_the_last_good_set_stays(
    tmp_path: Path,
) -> None:
    metrics = Metrics()
    _write(tmp_path, "Spread")
    own = OwnDocuments(tmp_path, _WithoutKinds(), metrics)
    async with AsyncExitStack() as stack:
        for activity in own.activities().values():
            await stack.enter_async_context(running(activity))
        await until(lambda: _strategy(own) is Spreading.SPREAD)
        assert not _is_broken(metrics)
        _write(tmp_path, "Sprawl")
        await own.watcher.refresh()
        assert _is_broken(metrics)
        assert _strategy(own) is Spreading.SPREAD
        _write(tmp_path, "Auto")
        await own.watcher.refresh()
        assert not _is_broken(metrics)
        assert _strategy(own) is Spreading.AUTO


async def test_an_extender_is_not_taken_for_somebody_who_decides_on_pods(tmp_path: Path) -> None:
    metrics = Metrics()
    _write(tmp_path, "Spread")
    own = OwnDocuments(tmp_path, _WithoutKinds(), metrics)
    async with AsyncExitStack() as stack:
        for activity in own.activities().values():
            await stack.enter_async_context(running(activity))
        await until(lambda: own.watcher.current() is not None)
    told = metrics.exposition("")[0].decode()
    assert "sluice_policy_set_info{" not in told, "the alert SluiceGone would be silent"
    assert metrics.registry.get_sample_value("sluice_policy_set_loaded_timestamp_seconds")


async def test_readiness_says_while_documents_of_the_cluster_are_not_known(
    tmp_path: Path, client: Client
) -> None:
    own = OwnDocuments(tmp_path, _WithoutKinds(), Metrics())
    around = Surroundings(
        FixedAccess(Access("")),
        client,
        build_catalog(),
        Metrics(),
        documents=own.watcher,
        more_documents=own.api,
    )
    found = Extender(around, PlacementSettings(), Candidacy()).readiness()
    (told,) = [each for each in found.conditions if each.name == "api-documents-synced"]
    assert not told.ok
    assert not told.required
