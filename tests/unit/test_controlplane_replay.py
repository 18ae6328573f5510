# SPDX-License-Identifier: Apache-2.0
"""What cards of the stand-in do over a day: read from the trace where there is one."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.controlplane.dcgm_replay import Moment, load

_ONE, _TWO, _LATE = "pod-1", "pod-2", "pod-3"


def _write(folder: Path, name: str, rows: Iterable[tuple[float, str, float]]) -> None:
    lines = ["timestamp_anon,value,container_ip"]
    lines += [f"{time},{value},{pod}" for time, pod, value in rows]
    data = "\n".join(lines).encode()
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo(f"{name}.csv")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duty = [(57.0, _ONE, 20.0), (0.0, _ONE, 10.0), (0.0, _TWO, 100.0), (57.0, _TWO, 0.0)]
    memory = [(time, pod, (1 if pod == _ONE else 2) * 2.0**30) for time, pod, _ in duty]
    _write(tmp_path, "pod_gpu_duty_cycle_anon", [*duty, (57.0, _LATE, 50.0)])
    _write(tmp_path, "pod_gpu_memory_used_bytes_anon", [*memory, (57.0, _LATE, 2.0**30)])
    return tmp_path


def test_cards_do_what_the_pods_of_the_trace_did_in_the_order_of_time(folder: Path) -> None:
    environ = {"SLUICE_GENTD26": str(folder)}
    first, second, again = load(environ, cards=3, steps=2)
    assert first == (Moment(0.1, 1024), Moment(0.2, 1024))
    assert second == (Moment(1.0, 2048), Moment(0.0, 2048))
    assert again == first, "there are more cards than pods that were there throughout"


def test_a_trace_that_is_none_or_too_short_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no pod of 3 samples"):
        load({"SLUICE_GENTD26": str(folder)}, cards=1, steps=3)
    with pytest.raises(ValueError, match=r"there is no .*pod_gpu_duty_cycle_anon"):
        load({"SLUICE_GENTD26": str(tmp_path / "none")}, cards=1, steps=1)


def test_without_a_trace_a_seed_makes_the_same_day_each_time() -> None:
    made = load({}, cards=2, steps=300)
    assert made == load({}, cards=2, steps=300)
    assert len({moment.busy for moment in made[0]}) > 20
    assert made[0] != made[1]
