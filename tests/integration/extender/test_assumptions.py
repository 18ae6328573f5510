# SPDX-License-Identifier: Apache-2.0
"""A pod that the extender was asked about and that never comes: the real scheduler is woken."""

import http.client
import json
import ssl
import time
from urllib.parse import urlsplit

import pytest

from policies.model.keys import LOAD_FELL
from tests.controlplane import nodes
from tests.controlplane.extender import ExtenderLaunch, ExtenderProcess
from tests.integration.extender.cluster import Json, create, pod, wait_bound, wait_refused
from tests.integration.extender.conftest import Scheduled

pytestmark = pytest.mark.timeout(120)

_ASSUME_SECONDS = 6


@pytest.fixture(scope="module")
def launch() -> ExtenderLaunch:
    return ExtenderLaunch(environment={"SLUICE_ASSUME_SECONDS": str(_ASSUME_SECONDS)})


def test_who_was_refused_for_a_pod_that_never_comes_is_put_there_once_its_time_is_over(
    scheduled: Scheduled,
) -> None:
    plane = scheduled.control_plane
    plane.create_namespace("t")
    plane.create_nodes([nodes.time_sliced("only", count=1, replicas=4)])
    wanted = pod("ghost", mib=60_000)
    ghost = {**wanted, "metadata": {**wanted["metadata"], "namespace": "t", "uid": "ghost"}}
    # As a second scheduler would that dies between its question and the binding.
    assert _asked(scheduled.extender, ghost, "only") == ["only"]
    began = time.monotonic()
    create(plane, "t", [pod("late", mib=40_000)])
    assert "GPU memory" in wait_refused(plane, "t", "late", seconds=_ASSUME_SECONDS)
    assert wait_bound(plane, "t", 1, seconds=20) == {"late": "only"}
    # The scheduler itself looks again after minutes, unless something happens.
    assert _ASSUME_SECONDS - 1 < time.monotonic() - began < 20
    assert LOAD_FELL in plane.get("node", "only")["metadata"]["annotations"]


def test_who_was_refused_by_an_extender_that_is_gone_is_asked_about_by_the_next_one(
    scheduled: Scheduled,
) -> None:
    plane, extender = scheduled.control_plane, scheduled.extender
    plane.create_namespace("u")
    plane.create_nodes([nodes.time_sliced("other", count=1, replicas=4)])
    wanted = pod("ghost", mib=79_000)
    ghost = {**wanted, "metadata": {**wanted["metadata"], "namespace": "u", "uid": "second"}}
    assert _asked(extender, ghost, "other") == ["other"]
    create(plane, "u", [pod("late", mib=50_000)])
    assert "GPU memory" in wait_refused(plane, "u", "late", seconds=_ASSUME_SECONDS)
    # It takes what it knew of the pod that never comes, and of the one that waits, with it.
    extender.kill()
    extender.start()
    assert wait_bound(plane, "u", 1, seconds=20) == {"late": "other"}


def _asked(extender: ExtenderProcess, raw: Json, name: str) -> list[str]:
    """Ask whether a node may have a pod; it is taken to go there if so."""
    host = urlsplit(extender.url)
    tls = ssl.create_default_context(cafile=str(extender.ca))
    connection = http.client.HTTPSConnection(str(host.hostname), host.port, timeout=5, context=tls)
    try:
        body = json.dumps({"Pod": raw, "NodeNames": [name]})
        connection.request("POST", "/scheduler/filter", body)
        found: list[str] = json.load(connection.getresponse())["NodeNames"]
    finally:
        connection.close()
    return found
