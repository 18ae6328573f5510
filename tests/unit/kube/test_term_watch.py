# SPDX-License-Identifier: Apache-2.0
"""The newest term of a Lease, watched, against a fake API server over HTTP."""

from typing import Any

from policies.model.term import LeaseTerm
from reconciler.kube.client import Client
from reconciler.kube.term_watch import TermWatch
from tests.support.fake_apiserver import FakeApiServer
from tests.support.running import running
from tests.support.waiting import until

LEASES = "/apis/coordination.k8s.io/v1/leases"
PATH = "/apis/coordination.k8s.io/v1/namespaces/sluice/leases"


def lease(uid: str, created: str, transitions: int) -> dict[str, Any]:
    metadata = {"namespace": "sluice", "name": "leader", "uid": uid, "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"leaseTransitions": transitions}}


async def test_the_newest_term_is_known_as_soon_as_it_begins_and_outlives_its_lease(
    fake: FakeApiServer, client: Client
) -> None:
    watch = TermWatch(client, "sluice", "leader")
    assert watch.term() is None
    fake.put(LEASES, lease("u", "2026-01-01T00:00:00Z", 3))
    async with running(watch.run()):
        await until(lambda: watch.term() == _term("u", "2026-01-01T00:00:00Z", 3))
        fake.put(LEASES, lease("u", "2026-01-01T00:00:00Z", 4))
        await until(lambda: watch.term() == _term("u", "2026-01-01T00:00:00Z", 4))
        await fake.wait_watches()
        fake.remove(LEASES, "leader", "sluice")
        fake.put(LEASES, lease("v", "2026-01-01T00:00:09Z", 1))
        await until(lambda: watch.term() == _term("v", "2026-01-01T00:00:09Z", 1))
        fake.remove(LEASES, "leader", "sluice")
        fake.put(LEASES, {"metadata": {"name": "other", "namespace": "x"}})
    assert watch.term() == _term("v", "2026-01-01T00:00:09Z", 1)
    asked = [seen.query.get("fieldSelector") for seen in fake.seen if seen.path == PATH]
    assert set(asked) == {"metadata.name=leader"}


def _term(uid: str, created: str, transitions: int) -> LeaseTerm:
    return LeaseTerm("sluice/leader", uid, created, transitions)
