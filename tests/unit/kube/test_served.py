# SPDX-License-Identifier: Apache-2.0
"""Resources that the server serves early, late, or never, against a fake API server over HTTP."""

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.kube.client import Client
from reconciler.kube.reflector import ReflectorSettings
from reconciler.kube.resources import Resource
from reconciler.kube.served import ServedSettings, ServedWatch
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.running import running
from tests.support.waiting import until

GROUP = "/apis/example.test/v1"
CATS = Resource("example.test", "v1", "cats", namespaced=False)
DOGS = Resource("example.test", "v1", "dogs", namespaced=False)
SETTINGS = ServedSettings(look_seconds=0.01, reflector=ReflectorSettings(silence_seconds=5.0))


def animal(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def name_of(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["name"])


@pytest.fixture
def told() -> list[None]:
    return []


@pytest.fixture
def watch(client: Client, told: list[None]) -> ServedWatch[str]:
    made: ServedWatch[str] = ServedWatch(client, {CATS: name_of, DOGS: name_of}, SETTINGS)
    made.subscribe(lambda: told.append(None))
    return made


async def test_what_is_served_is_watched(fake: FakeApiServer, watch: ServedWatch[str]) -> None:
    fake.put(f"{GROUP}/cats", animal("tom"))
    fake.put(f"{GROUP}/dogs", animal("rex"))
    async with running(watch.run()):
        await until(lambda: watch.is_synced)
        assert list(watch.values()) == ["tom", "rex"]
        fake.put(f"{GROUP}/cats", animal("garfield"))
        await until(lambda: set(watch.values()) == {"tom", "rex", "garfield"})


async def test_a_cluster_that_serves_none_of_them_is_known_to_have_none(
    fake: FakeApiServer, watch: ServedWatch[str], told: list[None]
) -> None:
    async with running(watch.run()):
        await until(lambda: watch.is_synced)
        assert list(watch.values()) == []
        assert told


async def test_one_that_is_served_later_joins(
    fake: FakeApiServer, watch: ServedWatch[str], told: list[None]
) -> None:
    fake.put(f"{GROUP}/cats", animal("tom"))
    async with running(watch.run()):
        await until(lambda: watch.is_synced)
        assert watch.listed == (CATS,)
        before = len(told)
        fake.put(f"{GROUP}/dogs", animal("rex"))
        await until(lambda: watch.listed == (CATS, DOGS))
        assert list(watch.values()) == ["tom", "rex"]
        assert watch.is_synced
        assert len(told) > before


async def test_an_empty_list_is_told_too(
    fake: FakeApiServer, watch: ServedWatch[str], told: list[None]
) -> None:
    fake.put(f"{GROUP}/cats", animal("tom"))
    fake.remove(f"{GROUP}/cats", "tom")
    async with running(watch.run()):
        await until(lambda: watch.listed == (CATS,))
        await until(lambda: watch.is_synced and bool(told))


async def test_nothing_is_known_before_the_server_could_be_asked(
    fake: FakeApiServer, watch: ServedWatch[str], caplog: pytest.LogCaptureFixture
) -> None:
    fake.put(f"{GROUP}/cats", animal("tom"))
    fake.faults.append(Fault("GET", GROUP, 503, times=5))
    async with running(watch.run()):
        await until(lambda: fake.count("GET", GROUP) >= 3)
        assert not watch.is_synced
        await until(lambda: watch.is_synced)
        assert list(watch.values()) == ["tom"]
    assert len([r for r in caplog.records if "cannot tell" in r.message]) == 1


async def test_nothing_is_known_before_every_list_is_complete(
    fake: FakeApiServer, watch: ServedWatch[str]
) -> None:
    fake.put(f"{GROUP}/cats", animal("tom"))
    fake.put(f"{GROUP}/dogs", animal("rex"))
    fake.faults.append(Fault("GET", f"{GROUP}/dogs", 503, times=1))
    async with running(watch.run()):
        await until(lambda: watch.listed == (CATS,))
        assert not watch.is_synced
        assert list(watch.values()) == ["tom"]
        await until(lambda: watch.is_synced)


async def test_a_fault_of_our_own_ends_it(fake: FakeApiServer, client: Client) -> None:
    def broken(_: Mapping[str, Any]) -> str:
        raise RuntimeError("a bug")

    fake.put(f"{GROUP}/cats", animal("tom"))
    watch: ServedWatch[str] = ServedWatch(client, {CATS: broken}, SETTINGS)
    with pytest.raises(ExceptionGroup) as raised:
        await watch.run()
    assert raised.group_contains(RuntimeError, match="a bug")
