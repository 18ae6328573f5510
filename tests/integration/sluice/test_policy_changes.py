# SPDX-License-Identifier: Apache-2.0
"""Documents change while pods are created: every review is answered by one whole set."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.controlplane import ControlPlane
from tests.integration.sluice import flipping
from tests.integration.sluice.api import Created, connected
from tests.integration.sluice.conftest import MakeTeam
from tests.integration.sluice.flipping import A, B, Mounted, OneFile, Place, Side
from tests.integration.sluice.objects import HOLD, Json, decision, pod
from tests.integration.sluice.running import Running
from tests.support import waiting

_FLIPS = 10
_WORKERS = 8
_CREATES = 50
_SECONDS = 30.0


@pytest.fixture
def flipped(sluice: Running) -> Iterator[Running]:
    """Sluice with a folder for the two sets; without it again in the end."""
    with flipping.folder(sluice):
        yield sluice


def _held(name: str) -> Json:
    return pod(name=name, schedulingGates=[{"name": HOLD}])


@pytest.mark.parametrize("kind", [OneFile, Mounted], ids=["rename", "symlink-swap"])
async def test_no_review_is_answered_by_a_mixed_set(
    flipped: Running,
    control_plane: ControlPlane,
    make_team: MakeTeam,
    kind: Callable[[Running], Place],
) -> None:
    place = kind(flipped)
    place.put(A)
    generations = {await asyncio.to_thread(flipped.follow): A}
    team = await asyncio.to_thread(make_team, flipping.TENANT)
    answers: list[Created] = []

    async with (
        connected(control_plane) as api,
        api.creating(team.namespace, _held, answers, _WORKERS),
    ):
        for flip in range(_FLIPS):
            side = A if flip % 2 else B
            place.put(side)
            generations[await asyncio.to_thread(flipped.follow)] = side
            await _wait_for_more(answers)

    assert sorted(side.name for side in generations.values()) == ["a", "b"]
    made = [answer for answer in answers if answer.ok]
    for answer in made:
        _check_pod(answer, generations)
    for answer in answers:
        # The set changed between the two passes: refused by the new one, and a retry succeeds.
        assert answer.ok or "[RewriteMissing] policies have changed" in answer.message
    counts = Counter(flipping.side_of(answer.body).name for answer in made)
    assert min(counts["a"], counts["b"]) >= _CREATES // 2, counts
    for line in await asyncio.to_thread(_audited, flipped, team.namespace, made):
        _check_line(line, generations)


async def _wait_for_more(answers: list[Created]) -> None:
    enough = len(answers) + _CREATES // _FLIPS
    await waiting.until(lambda: len(answers) >= enough, _SECONDS)


def _audited(sluice: Running, namespace: str, made: list[Created]) -> list[Json]:
    """Return all audit lines on the creation of pods, once those of all that were made are in."""
    names = {answer.body["metadata"]["name"] for answer in made}
    sluice.audited(
        namespace,
        lambda line: line["phase"] == "Validate" and line["name"] in names,
        len(names),
    )
    return [line for line in sluice.audit(namespace) if line["operation"] == "CREATE"]


def _check_pod(answer: Created, generations: dict[str, Side]) -> None:
    claim = json.loads(decision(answer.body) or "")
    side = generations[claim["generation"]]
    assert claim["policy"] == f"rewrite-{side.name}"
    assert claim["given"] == {"main": {side.resource: 1}}
    assert flipping.side_of(answer.body) is side
    assert side.is_in(answer.warnings), answer.warnings


def _check_line(line: Json, generations: dict[str, Side]) -> None:
    """Hold what either pass recorded against the set that it names."""
    side = generations[line["generation"]]
    assert line["matched"] == side.matched
    assert line["policy"] == f"rewrite-{side.name}"
    assert line["given"] == {side.resource: 1}
    if line["phase"] == "Mutate":
        assert side.is_in(tuple(line["warnings"]))
        assert side.resource in json.dumps(line["patch"])


async def test_a_change_takes_effect_without_a_restart(
    flipped: Running, make_team: MakeTeam
) -> None:
    place = OneFile(flipped)
    for side in (A, B, A):
        place.put(side)
        await asyncio.to_thread(flipped.follow)
        team = await asyncio.to_thread(make_team, flipping.TENANT)

        answer = await asyncio.to_thread(team.apply, pod())

        assert side.is_in(answer.warnings), answer.warnings
