# SPDX-License-Identifier: Apache-2.0
"""Client and reflector against a real API server that is restarted, compacted and cut off.

It has a control plane of its own, since others could not work on one that is being broken.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from policies.vendors import build_catalog
from reconciler.kube.access import KubeconfigAccess
from reconciler.kube.backoff import Backoff
from reconciler.kube.client import Client, Page
from reconciler.kube.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from reconciler.kube.facts import watch_cluster
from reconciler.kube.reflector import Reflector, ReflectorSettings
from reconciler.kube.resources import NODES, PODS, Resource, Selection, Target
from reconciler.kube.store import Change, Key
from tests.controlplane import ControlPlane, nodes
from tests.support.breakable_link import BreakableLink
from tests.support.running import running
from tests.support.waiting import until

CONFIGMAPS = Resource("", "v1", "configmaps")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
APISERVER = "kube-apiserver"
QUICK = Backoff(first_seconds=0.05, cap_seconds=0.5)
LONG = 30.0


@dataclass(frozen=True, slots=True)
class Seen:
    uid: str
    value: str


def view(item: Mapping[str, Any]) -> Seen:
    return Seen(item["metadata"]["uid"], item.get("data", {}).get("value", ""))


@pytest.fixture(scope="module")
def control_plane(binaries: Mapping[str, Path]) -> Iterator[ControlPlane]:
    with ControlPlane(binaries) as started:
        started.create_namespace("team")
        yield started


@pytest.fixture
def selection(request: pytest.FixtureRequest) -> Selection:
    """The ConfigMaps of this test alone."""
    return Selection(CONFIGMAPS, "team", label_selector=f"test={label(request)}")


def label(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[:60].strip("_-[]").replace("[", "-")


def config_map(selection: Selection, name: str, value: str = "") -> dict[str, Any]:
    key, _, label = selection.label_selector.partition("=")
    prefix = label[-40:].replace("_", "-").strip("-")
    metadata = {"name": f"{prefix}.{name}", "labels": {key: label}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def target(item: Mapping[str, Any]) -> Target:
    return Target(CONFIGMAPS, item["metadata"]["name"], "team")


async def create(client: Client, selection: Selection, name: str, value: str = "") -> Any:
    return await client.create(
        Target(CONFIGMAPS, namespace="team"), config_map(selection, name, value)
    )


async def change(client: Client, item: Mapping[str, Any], value: str) -> Any:
    operation = {"op": "replace", "path": "/data/value", "value": value}
    return await client.patch_json(target(item), [operation])


def reflect(client: Client, selection: Selection, **settings: Any) -> Reflector[Seen]:
    return Reflector(client, selection, view, ReflectorSettings(**{"backoff": QUICK, **settings}))


class Ledger:
    """What a subscriber believes, from changes alone; a change that does not fit fails the run."""

    def __init__(self, reflector: Reflector[Seen]) -> None:
        self.held: dict[Key, Seen] = {}
        reflector.subscribe(self.take)

    def take(self, change: Change[Seen]) -> None:
        assert self.held.get(change.key) == change.old
        if change.new is None:
            del self.held[change.key]
        else:
            self.held[change.key] = change.new


async def truth(client: Client, selection: Selection) -> dict[Key, Seen]:
    page: Any = await client.list_page(selection, limit=10_000)
    return {Key("team", item["metadata"]["name"]): view(item) for item in page.items}


async def agrees(client: Client, selection: Selection, ledger: Ledger) -> None:
    expected = await truth(client, selection)
    await until(lambda: ledger.held == expected, LONG)


async def compact(control_plane: ControlPlane) -> None:
    """Make etcd forget everything before now, through its JSON gateway."""
    url = f"http://127.0.0.1:{control_plane._made.layout.ports.etcd_client}/v3/kv"
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/range", json={"key": "AA=="}) as answer:
            revision = (await answer.json())["header"]["revision"]
        request = {"revision": revision, "physical": True}
        async with session.post(f"{url}/compaction", json=request) as answer:
            assert answer.status == 200, await answer.text()


async def restart(control_plane: ControlPlane) -> None:
    await asyncio.to_thread(control_plane.components.kill_component, APISERVER)
    await asyncio.to_thread(control_plane.components.start_component, APISERVER)


async def test_more_than_three_thousand_objects_are_listed_in_pages_and_watched(
    client: Client, selection: Selection
) -> None:
    count, pages = 3100, list[Page]()
    limit = asyncio.Semaphore(16)

    async def one(number: int) -> None:
        async with limit:
            await create(client, selection, f"c{number}")

    await asyncio.gather(*(one(number) for number in range(count)))

    class Counting(Client):
        async def list_page(
            self, selection: Selection, *, limit: int, continue_token: str = ""
        ) -> Page:
            page = await client.list_page(selection, limit=limit, continue_token=continue_token)
            pages.append(page)
            return page

        watch = client.watch

    reflector = reflect(Counting(KubeconfigAccess("")), selection)
    async with running(reflector.run()):
        async with asyncio.timeout(LONG):
            await reflector.synced.wait()
        assert len(reflector) == count
        assert [len(page.items) for page in pages] == [500] * 6 + [100]
        await create(client, selection, "later", "x")
        await until(lambda: len(reflector) == count + 1)


async def test_an_api_server_that_is_killed_and_restarted_is_followed_again(
    control_plane: ControlPlane, client: Client, selection: Selection
) -> None:
    items = [await create(client, selection, f"c{number}") for number in range(5)]
    reflector = reflect(client, selection)
    ledger = Ledger(reflector)
    async with running(reflector.run()):
        await reflector.synced.wait()
        for number in range(2):
            await restart(control_plane)
            await create(client, selection, f"after{number}")
            await change(client, items[number], "changed")
            await client.delete(target(items[4 - number]))
            await agrees(client, selection, ledger)
    assert reflector.counters.failures > 0


async def test_compaction_under_an_open_watch_disturbs_nothing(
    control_plane: ControlPlane, client: Client, selection: Selection
) -> None:
    item = await create(client, selection, "a")
    reflector = reflect(client, selection)
    ledger = Ledger(reflector)
    async with running(reflector.run()):
        await reflector.synced.wait()
        for number in range(5):
            await change(client, item, str(number))
            await compact(control_plane)
            await agrees(client, selection, ledger)
    assert reflector.counters.lists == 1


async def test_what_was_compacted_while_the_watch_was_cut_off_is_told_by_a_new_list(
    control_plane: ControlPlane,
    client: Client,
    link: BreakableLink,
    linked: Client,
    selection: Selection,
) -> None:
    items = [await create(client, selection, f"c{number}") for number in range(4)]
    reflector = reflect(linked, selection)
    ledger = Ledger(reflector)
    async with running(reflector.run()):
        await until(lambda: reflector.counters.watches == 1)
        link.is_down = True
        link.cut()
        await client.delete(target(items[0]))
        await change(client, items[1], "changed")
        await client.delete(target(items[2]))
        again = await create(client, selection, "c2", "another")
        await compact(control_plane)
        # A new API server has no cached history either, as after any upgrade.
        await restart(control_plane)
        link.is_down = False
        await agrees(client, selection, ledger)
        assert ledger.held[Key("team", again["metadata"]["name"])].uid == again["metadata"]["uid"]
        await change(client, items[3], "later")
        await agrees(client, selection, ledger)
    assert reflector.counters.lists == 2


async def test_compaction_between_two_pages_ends_in_a_whole_list(
    control_plane: ControlPlane, client: Client, selection: Selection
) -> None:
    for number in range(10):
        await create(client, selection, f"c{number}")
    compacted: list[str] = []

    class Compacting(Client):
        async def list_page(
            self, selection: Selection, *, limit: int, continue_token: str = ""
        ) -> Page:
            if continue_token and not compacted:
                compacted.append(continue_token)
                await create(client, selection, "meanwhile")
                await compact(control_plane)
                await restart(control_plane)
            return await client.list_page(selection, limit=limit, continue_token=continue_token)

        watch = client.watch

    reflector = reflect(Compacting(KubeconfigAccess("")), selection, page_size=4)
    ledger = Ledger(reflector)
    async with running(reflector.run()):
        await reflector.synced.wait()
        await agrees(client, selection, ledger)
    assert len(ledger.held) == 11
    assert compacted


async def test_connections_cut_again_and_again_lose_and_repeat_nothing(
    client: Client, link: BreakableLink, linked: Client, selection: Selection
) -> None:
    items = [await create(client, selection, f"c{number}") for number in range(10)]
    reflector = reflect(linked, selection)
    ledger = Ledger(reflector)
    async with running(reflector.run()):
        await until(lambda: reflector.counters.watches >= 1)
        for number in range(30):
            item = items[number % 10]
            if number % 3 == 2:
                await client.delete(target(item))
                name = item["metadata"]["name"].rpartition(".")[2]
                items[number % 10] = await create(client, selection, name, str(number))
            else:
                await change(client, item, str(number))
            if number % 4 == 0:
                watches = reflector.counters.watches
                link.cut()
            if number % 4 == 2:
                await until(lambda watches=watches: reflector.counters.watches > watches)  # type: ignore[misc]
        await agrees(client, selection, ledger)
    assert reflector.counters.lists == 1
    assert reflector.counters.watches > 8


async def test_a_frozen_connection_is_noticed_and_replaced(
    client: Client, link: BreakableLink, linked: Client, selection: Selection
) -> None:
    item = await create(client, selection, "a")
    reflector = reflect(linked, selection, silence_seconds=1.0)
    ledger = Ledger(reflector)
    async with running(reflector.run()):
        await until(lambda: reflector.counters.watches == 1)
        assert link.freeze()
        await change(client, item, "unseen at first")
        await agrees(client, selection, ledger)
    assert reflector.counters.lists == 1


async def test_a_quiet_watch_stays_in_touch_and_its_version_fresh(
    client: Client, selection: Selection
) -> None:
    """What happens to other objects of the kind brings bookmarks at the end of short watches."""
    item = await create(client, selection, "a")
    reflector = reflect(client, selection, silence_seconds=6.0)
    ages: list[float] = []
    async with running(reflector.run()):
        await until(lambda: reflector.counters.watches == 1)
        start = int(reflector._store.version)
        async with asyncio.timeout(40):
            while int(reflector._store.version) <= start:
                await client.create(
                    Target(CONFIGMAPS, namespace="team"),
                    {"metadata": {"generateName": "of-no-interest-"}},
                )
                ages.append(reflector.seconds_since_contact(time.monotonic()))
                await asyncio.sleep(0.2)
    assert reflector.get(Key("team", item["metadata"]["name"]))
    assert 5.0 < max(ages) < 7.0
    assert (reflector.counters.failures, reflector.counters.lists) == (0, 1)


async def test_an_event_of_several_megabytes_arrives(client: Client, selection: Selection) -> None:
    """The API server escapes `<` with six bytes: its own limit of 1 MiB makes events of 5 MiB."""
    sizes: list[int] = []

    def size(item: Mapping[str, Any]) -> int:
        sizes.append(len(orjson.dumps(item).replace(b"<", b"\\u003c")))
        return len(item["data"]["value"])

    reflector = Reflector(client, selection, size)
    async with running(reflector.run()):
        await reflector.synced.wait()
        await create(client, selection, "big", "<" * 900_000)
        await until(lambda: reflector.values() == (900_000,), LONG)
    assert max(sizes) > 5_000_000
    assert (reflector.counters.failures, reflector.counters.lists) == (0, 1)


async def test_the_errors_of_a_real_server_are_ours(client: Client, selection: Selection) -> None:
    item = await create(client, selection, "a")
    with pytest.raises(AlreadyExistsError):
        await create(client, selection, "a")
    await change(client, item, "b")
    version = item["metadata"]["resourceVersion"]
    path = "/metadata/resourceVersion"
    with pytest.raises(ConflictError):
        await client.patch_json(target(item), [{"op": "replace", "path": path, "value": version}])
    with pytest.raises(InvalidError):
        await client.patch_json(target(item), [{"op": "test", "path": path, "value": version}])
    with pytest.raises(ConflictError):
        await client.delete(target(item), uid="another")
    with pytest.raises(NotFoundError):
        await client.get(Target(CONFIGMAPS, "nowhere", "team"))
    assert (await client.server_version()).startswith("v1.")
    assert await client.serves(PODS)
    assert not await client.serves(Resource("sluice.dev", "v1", "tenants"))


async def test_server_side_apply_creates_and_changes(client: Client, selection: Selection) -> None:
    body = config_map(selection, "a", "one")
    await client.apply(target(body), body, field_manager="sluice")
    applied: Any = await client.apply(
        target(body), config_map(selection, "a", "two"), field_manager="sluice"
    )
    assert applied["data"]["value"] == "two"


async def test_a_user_without_rights_is_told_and_gets_them_later(
    control_plane: ControlPlane, selection: Selection, client: Client
) -> None:
    await create(client, selection, "a")
    kubeconfig = control_plane.add_user("watcher")
    async with Client(KubeconfigAccess(str(kubeconfig))) as limited:
        with pytest.raises(ForbiddenError, match="watcher"):
            await limited.list_page(selection, limit=1)
        reflector = reflect(limited, selection)
        async with running(reflector.run()):
            await until(lambda: reflector.counters.failures > 1)
            assert not reflector.synced.is_set()
            create_role = "role reader --verb=list,watch --resource=configmaps -n team"
            await control_plane.kubectl_async("create", *create_role.split())
            bind = "rolebinding reader --role=reader --user=watcher -n team"
            await control_plane.kubectl_async("create", *bind.split())
            async with asyncio.timeout(LONG):
                await reflector.synced.wait()
            await until(lambda: len(reflector) == 1)


async def test_a_token_that_was_replaced_in_its_file_is_found_on_refusal(
    control_plane: ControlPlane, tmp_path: Path, selection: Selection
) -> None:
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    token = tmp_path / "token"
    token.write_text("expired")
    config["users"] = [{"name": "rotating", "user": {"tokenFile": str(token)}}]
    config["contexts"][0]["context"]["user"] = "rotating"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    async with Client(KubeconfigAccess(str(path))) as rotating:
        reflector = reflect(rotating, selection)
        async with running(reflector.run()):
            await until(lambda: reflector.counters.failures > 0)
            token.write_text(control_plane.token + "\n")
            async with asyncio.timeout(LONG):
                await reflector.synced.wait()


@asynccontextmanager
async def fleet(control_plane: ControlPlane) -> AsyncIterator[list[str]]:
    made = [dict(node) for node in nodes.fleet()]
    await asyncio.to_thread(control_plane.create_nodes, made)
    names = [str(node["metadata"]["name"]) for node in made]  # type: ignore[index]
    try:
        yield names
    finally:
        await control_plane.kubectl_async("delete", "nodes", *names)


async def test_facts_follow_a_real_cluster_and_its_heartbeats_change_nothing(
    control_plane: ControlPlane, client: Client
) -> None:
    catalog = build_catalog()
    watch = watch_cluster(client, lambda name: catalog.classify(name) is not None)
    async with fleet(control_plane) as names, running(watch.run()):
        async with asyncio.timeout(LONG):
            await watch.wait_synced()
        facts = watch.facts(NOW)
        assert facts.stale_seconds is None
        assert "team" in facts.cluster.namespaces
        assert [node.name for node in facts.cluster.nodes or ()] == sorted(names)
        assert any("nvidia.com/gpu" in node.allocatable for node in facts.cluster.nodes or ())
        assert not any("cpu" in node.allocatable for node in facts.cluster.nodes or ())
        before, events = watch.cluster(), watch.counters["nodes"].events
        beat = [{"op": "add", "path": "/status/nodeInfo/bootID", "value": "beat"}]
        await client.patch_json(Target(NODES, names[0], subresource="status"), beat)
        await until(lambda: watch.counters["nodes"].events > events)
        assert watch.cluster() is before
        zone = [{"op": "add", "path": "/metadata/labels/zone", "value": "b"}]
        await client.patch_json(Target(NODES, names[0]), zone)
        await until(lambda: watch.cluster() is not before)
