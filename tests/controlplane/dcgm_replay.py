# SPDX-License-Identifier: Apache-2.0
"""What cards of inference pods did over a day: read from GenTD26, or made up by a seeded generator.

GenTD26 (Alibaba, cluster-trace-v2026-GenAI) is not part of this repository; the folder with its
archives is named by SLUICE_GENTD26. Serving the values is not here (`dcgm`).
"""

import csv
import io
import math
import random
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.dcgm import Card

STEP_SECONDS = 57.0
"""Between two samples of the trace."""

_DUTY = "pod_gpu_duty_cycle_anon"
_MEMORY = "pod_gpu_memory_used_bytes_anon"


@dataclass(frozen=True, slots=True)
class Moment:
    """A card at a moment: `busy` from 0 to 1, used memory in MiB."""

    busy: float
    used_mib: float


Series = tuple[Moment, ...]


def load(
    environ: Mapping[str, str], *, cards: int, steps: int, seed: int = 26
) -> tuple[Series, ...]:
    """Return the series of so many cards: of the trace if there is one, else made up.

    Raises ValueError where there should be a trace and is none of so many steps.
    """
    folder = environ.get("SLUICE_GENTD26")
    found = tuple(_trace(Path(folder), steps)) if folder else ()
    if folder and not found:
        raise ValueError(f"SLUICE_GENTD26: {folder} has no pod of {steps} samples")
    if found:
        return tuple(found[number % len(found)] for number in range(cards))
    return tuple(
        made_up(random.Random(f"{seed}-{number}"), steps)  # noqa: S311 - no secret
        for number in range(cards)
    )


def made_up(chance: random.Random, steps: int) -> Series:
    """Return a card with the shape of an inference pod's: quiet, bursts, memory held."""
    held = chance.uniform(8_000, 70_000)
    level, series = chance.uniform(0, 0.3), []
    for step in range(steps):
        day = 0.5 - 0.5 * math.cos(2 * math.pi * step * STEP_SECONDS / 86_400)
        burst = chance.random() < 0.05 + 0.2 * day
        level = min(1.0, max(0.0, 0.8 * level + (chance.uniform(0.4, 1.0) if burst else 0) * 0.4))
        series.append(Moment(round(level, 2), held + 2_000 * level))
    return tuple(series)


def apply(card: Card, moment: Moment, seconds: float) -> None:
    """Set a card to a moment; `seconds` have passed since the one before."""
    card.busy = moment.busy
    card.used_mib = min(moment.used_mib, card.total_mib - card.reserved_mib)
    card.energy_millijoules += round(1000 * seconds * (75 + 600 * moment.busy))


def _trace(folder: Path, steps: int) -> Iterator[Series]:
    duty, memory = _by_pod(folder, _DUTY), _by_pod(folder, _MEMORY)
    for pod in sorted(duty.keys() & memory.keys()):
        times = sorted(duty[pod].keys() & memory[pod].keys())[:steps]
        if len(times) < steps:
            continue
        yield tuple(
            # The trace's duty cycle is in per cent, its memory in bytes.
            Moment(min(duty[pod][time] / 100, 1.0), memory[pod][time] / 2**20)
            for time in times
        )


def _by_pod(folder: Path, name: str) -> dict[str, dict[float, float]]:
    found: dict[str, dict[float, float]] = defaultdict(dict)
    path = folder / f"{name}.tar.gz"
    if not path.is_file():
        raise ValueError(f"SLUICE_GENTD26: there is no {path}")
    with tarfile.open(path) as archive:
        file = archive.extractfile(f"{name}.csv")
        if file is None:
            raise ValueError(f"{name}: the archive holds no table")
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")):
            found[row["container_ip"]][float(row["timestamp_anon"])] = float(row["value"])
    return found
