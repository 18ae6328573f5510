# SPDX-License-Identifier: Apache-2.0
"""Runs the scenarios and sums up what the observer has found."""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.controlplane import ControlPlaneError
from tests.prove.driver import DriverError
from tests.prove.ending import Ending, group_refusals, judge_ending
from tests.prove.findings import Fact, Finding
from tests.prove.leases import declared, undeclared
from tests.prove.load import Extent, Load
from tests.prove.scene import Scale
from tests.prove.stage import ProofError, Stage, set_stage

_SETTLE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.5
_SHOWN: Final = 20
_MUST_BE_NOTHING: Final = ("breaches", "lost", "stuck", "late", "drifts", "failure")


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one run, and what to show a person of what was found."""

    figures: Mapping[str, Any]
    texts: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Tell whether nothing was found that must not be."""
        return not any(self.figures[key] for key in _MUST_BE_NOTHING)


async def prove(binaries: Mapping[str, Path], directory: Path, extent: Extent) -> Report:
    """Set the stage, run everything, and report."""
    begun = time.monotonic()
    async with set_stage(binaries, directory, Scale(), extent.seed) as stage:
        load = Load(stage, extent)
        failure = await _run(stage, load)
        ending = await _settled(stage)
        return summarise(stage, load, ending, (time.monotonic() - begun, failure))


async def _run(stage: Stage, load: Load) -> str:
    """Run all scenarios; return why they could not go on, or nothing."""
    failure = ""
    try:
        await stage.leader()
        for name, scenario in load.scenarios:
            stage.say(f"-- {name}")
            await scenario()
    except* (ProofError, DriverError, ControlPlaneError) as errors:
        failure = "; ".join(str(each) for each in errors.exceptions)
    return failure


def summarise(stage: Stage, load: Load, ending: Ending, run: tuple[float, str]) -> Report:
    """Return the figures of everything that was found. `run`: its seconds, why it broke off."""
    seconds, failure = run
    observer, standstill = stage.observer, stage.observation.standstill
    breaches = [*observer.breaches, *undeclared(stage.observation.leases, observer)]
    waits = [release.waited_seconds for release in observer.releases.values()] or [0.0]
    figures = {
        "prove": "quota",
        "breaches": len(breaches),
        "lost": len(ending.lost),
        "stuck": len(standstill.stuck),
        "kills": load.kills,
        "released": ending.released,
        "waiting": ending.waiting,
        "refused": ending.refused,
        "deleted": ending.deleted,
        "created": len(stage.driver.created.made),
        "late": sum(each.is_late for each in load.reclaims),
        "reclaims": {each.case: [each.seconds, each.bound_seconds] for each in load.reclaims},
        "declared": declared(stage.observation.leases, observer),
        "kinds": Counter(str(each.kind) for each in breaches),
        "evictions": len(observer.evictions),
        "overtaken": len(observer.facts(Fact.OVERTAKEN)),
        "gaps": len(observer.facts(Fact.GAP)),
        "drifts": len(observer.facts(Fact.DRIFT)),
        "terms": stage.observation.leases.terms,
        "refusals": group_refusals(stage.driver.created.refused),
        "retries": stage.driver.retries,
        "longest_standstill_s": round(standstill.longest_seconds, 1),
        "wait_p50_s": round(statistics.median(waits), 2),
        "seconds": round(seconds),
        "failure": failure,
    }
    found = [*breaches, *observer.facts(Fact.DRIFT)]
    return Report(figures, _texts(found, ending, standstill.stuck))


def _texts(found: list[Finding], ending: Ending, stuck: Mapping[str, str]) -> tuple[str, ...]:
    return (
        *(f"{each.kind}: {each.text}" for each in found[:_SHOWN]),
        *(f"Lost: {text}" for text in ending.lost[:_SHOWN]),
        *(f"Stuck: {text}" for text in tuple(stuck.values())[:_SHOWN]),
    )


async def _settled(stage: Stage) -> Ending:
    """Judge how everything ended, once the last reasons are written."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while (ending := judge_ending(stage.observer, stage.driver.created)).lost:
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(_POLL_SECONDS)
    return ending
