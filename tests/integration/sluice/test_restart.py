# SPDX-License-Identifier: Apache-2.0
"""Sluice ends and starts while pods are created: what is not decided is refused, never let in."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.controlplane import ControlPlane
from tests.integration.sluice.api import Created, connected
from tests.integration.sluice.objects import (
    GATE,
    HOLD,
    SHARED,
    Json,
    decision,
    gates,
    gpus,
    plain_pod,
    pod,
    void_containers,
)
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team
from tests.support import waiting

_RESTARTS = 2
_WORKERS = 4
_MORE = 10
_SECONDS = 40.0

_UNREACHABLE = 'failed calling webhook "validate.sluice.dev"'
_NOT_MUTATED = "[RewriteMissing] the pod was not rewritten"
_STARTING = "[NamespaceUnknown]"
_LOADING = "Sluice has no policies loaded yet"


def _gpu_pod(name: str) -> Json:
    return pod(name=f"gpu-{name}", schedulingGates=[{"name": HOLD}])


def _other_pod(name: str) -> Json:
    return plain_pod(f"plain-{name}", schedulingGates=[{"name": HOLD}])


def _terminate(sluice: Running) -> None:
    sluice.installed.stop()


def _crash(sluice: Running) -> None:
    sluice.installed.kill()


@pytest.fixture(autouse=True)
def running_again(sluice: Running) -> Iterator[None]:
    """Have Sluice running after the test, also if that has failed half way."""
    yield
    if not sluice.installed.is_started:
        sluice.installed.start()


@pytest.mark.parametrize("end", [_terminate, _crash], ids=["sigterm", "sigkill"])
async def test_no_create_ends_in_a_raw_gpu_pod(
    sluice: Running, control_plane: ControlPlane, team_a: Team, end: Callable[[Running], None]
) -> None:
    asked: list[Created] = []
    others: list[Created] = []

    async with (
        connected(control_plane) as api,
        api.creating(team_a.namespace, _gpu_pod, asked, _WORKERS),
        api.creating(team_a.namespace, _other_pod, others, 1),
    ):
        for _ in range(_RESTARTS):
            await _wait_for_more_made(asked)
            await asyncio.to_thread(end, sluice)
            await _wait_for_more(others)
            await asyncio.to_thread(sluice.installed.start)
        await _wait_for_more_made(asked)

    for answer in asked:
        reasons = (_UNREACHABLE, _NOT_MUTATED, _STARTING, _LOADING)
        assert answer.ok or any(reason in answer.message for reason in reasons), answer.message
    assert not all(answer.ok for answer in asked)
    # Sluice down never stops pods that touch no GPU.
    assert all(answer.ok for answer in others)
    for stored in await asyncio.to_thread(team_a.pods):
        if stored["metadata"]["name"].startswith("gpu"):
            assert gpus(stored) == {"main": {SHARED: "1"}}
            assert GATE in gates(stored)
            assert decision(stored)
        else:
            assert void_containers(stored) == {"main"}


async def _wait_for_more(answers: list[Created]) -> None:
    enough = len(answers) + _MORE
    await waiting.until(lambda: len(answers) >= enough, _SECONDS)


async def _wait_for_more_made(answers: list[Created]) -> None:
    enough = sum(answer.ok for answer in answers) + _MORE
    await waiting.until(lambda: sum(answer.ok for answer in answers) >= enough, _SECONDS)


async def test_a_review_in_flight_is_answered_when_the_process_is_told_to_end(
    sluice: Running, control_plane: ControlPlane, team_a: Team
) -> None:
    """The grace period goes on answering, so creates fail only once the port is closed."""
    answers: list[Created] = []
    async with (
        connected(control_plane) as api,
        api.creating(team_a.namespace, _gpu_pod, answers, _WORKERS),
    ):
        await _wait_for_more_made(answers)
        await asyncio.to_thread(sluice.installed.stop)
        await waiting.until(lambda: not answers[-1].ok, _SECONDS)

    refused = [answer.message for answer in answers if not answer.ok]
    # Cut connections would show as EOF or as a reset.
    assert all("connection refused" in message for message in refused), refused


async def test_the_audit_log_is_whole_after_an_end(
    sluice: Running, control_plane: ControlPlane, team_a: Team
) -> None:
    answers: list[Created] = []
    async with (
        connected(control_plane) as api,
        api.creating(team_a.namespace, _gpu_pod, answers, _WORKERS),
    ):
        await _wait_for_more_made(answers)
        await asyncio.to_thread(sluice.installed.stop)

    written = {
        line["name"]
        for line in sluice.audit(team_a.namespace)
        if line["phase"] == "Validate" and line["operation"] == "CREATE" and not line["dryRun"]
    }
    assert {answer.body["metadata"]["name"] for answer in answers if answer.ok} <= written
