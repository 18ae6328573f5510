# SPDX-License-Identifier: Apache-2.0
"""What tenants use, watched, against a fake API server over HTTP."""

from datetime import UTC, datetime
from typing import Any

import pytest

from policies.model.facts import ClusterFacts, Facts
from policies.model.term import LeaseTerm
from policies.model.usage import TenantUsage
from reconciler.kube.client import Client
from reconciler.kube.reflector import ReflectorSettings
from reconciler.kube.served import ServedSettings
from reconciler.kube.usage import UsageWatch
from tests.support.fake_apiserver import FakeApiServer
from tests.support.running import running
from tests.support.waiting import until
from webhook.live_facts import LiveFacts

TENANTS = "/apis/sluice.dev/v1alpha1/tenants"
NOW = datetime(2031, 5, 17, tzinfo=UTC)
TERM = LeaseTerm("sluice/sluice", "u", "2031-05-17T00:00:00Z", 3)
SETTINGS = ServedSettings(look_seconds=0.01, reflector=ReflectorSettings(silence_seconds=5.0))


def tenant(name: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": status}


@pytest.fixture
def watch(client: Client) -> UsageWatch:
    return UsageWatch(client, SETTINGS)


async def test_the_newest_status_of_each_tenant_is_known(
    fake: FakeApiServer, watch: UsageWatch
) -> None:
    fake.put(TENANTS, tenant("chat", used="2"))
    fake.put(TENANTS, tenant("new"))
    async with running(watch.run()):
        await until(lambda: watch.usage() == {"chat": TenantUsage({"": 2000})})
        fake.put(TENANTS, tenant("chat", used="3.5"))
        fake.put(TENANTS, tenant("new", used="0"))
        await until(
            lambda: watch.usage() == {"chat": TenantUsage({"": 3500}), "new": TenantUsage({"": 0})}
        )
        fake.remove(TENANTS, "chat")
        await until(lambda: set(watch.usage()) == {"new"})


async def test_the_same_object_is_returned_until_something_changes(
    fake: FakeApiServer, watch: UsageWatch
) -> None:
    fake.put(TENANTS, tenant("chat", used="2"))
    async with running(watch.run()):
        await until(lambda: "chat" in watch.usage())
        before = watch.usage()
        assert watch.usage() is before
        fake.put(TENANTS, tenant("chat", used="3"))
        await until(lambda: watch.usage() is not before)


async def test_an_odd_status_hides_no_other(fake: FakeApiServer, watch: UsageWatch) -> None:
    fake.put(TENANTS, tenant("odd", used=[], pools={"": 1}, memory=3, resources=[None]))
    fake.put(TENANTS, tenant("chat", used="2"))
    async with running(watch.run()):
        await until(lambda: "chat" in watch.usage())
        assert watch.usage()["odd"] == TenantUsage({"": 0})


class _Picture:
    is_synced = True

    def facts(self, now: datetime) -> Facts:
        return Facts(ClusterFacts({}), now, stale_seconds=7)


class _Terms:
    def term(self) -> LeaseTerm | None:
        return TERM


async def test_facts_carry_usage_as_soon_as_it_is_known_and_nothing_waits_for_it(
    fake: FakeApiServer, watch: UsageWatch
) -> None:
    source = LiveFacts(_Picture(), watch, _Terms())

    assert source.is_synced
    assert source.facts(NOW) == Facts(ClusterFacts({}), NOW, stale_seconds=7, term=TERM)

    fake.put(TENANTS, tenant("chat", used="2"))
    async with running(watch.run()):
        await until(lambda: source.facts(NOW).usage == {"chat": TenantUsage({"": 2000})})
        assert source.facts(NOW).stale_seconds == 7
