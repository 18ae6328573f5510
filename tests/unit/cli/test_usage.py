# SPDX-License-Identifier: Apache-2.0
"""`sluice usage` reads audit logs as they are found, and says what it could not read."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import sluice
from reconciler.runtime.audit_usage import UsageEntry, to_line

HOUR = 3_600_000_000


def line(hours_ago: float, gpu_hours: float = 1, minutes: float = 60, **key: str) -> bytes:
    # Not once for the module: a run of all tests takes a while.
    end = datetime.now(UTC) - timedelta(hours=hours_ago)
    named = {"tenant": "chat", "pool": "", "mode": "MIG"} | key
    begin = end - timedelta(minutes=minutes)
    return to_line(UsageEntry(begin, end, **named, micro_gpu_seconds=round(gpu_hours * HOUR)))


def run(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(sluice.main, ["usage", *arguments], input=stdin)


def hours(result: Result) -> dict[tuple[str, str, str], float]:
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)["usage"]
    return {(r["tenant"], r["pool"], r["mode"]): r["gpuHours"] for r in rows}


def test_lines_are_summed_by_tenant_pool_and_mode_over_rotated_files(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(line(1) + line(2, pool="h100") + b'{"time":"x","verdict":"Allow"}\n')
    (tmp_path / "audit.jsonl.1").write_bytes(line(3, 2))
    (tmp_path / "audit.jsonl.2").write_bytes(line(4, mode="MPS"))
    (tmp_path / "audit.jsonl.old").write_bytes(line(4, 100))
    found = run("--audit", str(log), "--audit", str(tmp_path / "audit.jsonl.1"), "-o", "json")
    assert hours(found) == {
        ("chat", "", "MIG"): 3,
        ("chat", "", "MPS"): 1,
        ("chat", "h100", "MIG"): 1,
    }


def test_a_span_that_lies_in_the_asked_time_in_part_counts_in_part(tmp_path: Path) -> None:
    log = tmp_path / "a"
    log.write_bytes(line(23, 4, minutes=120) + line(30))
    (found,) = hours(run("--audit", str(log), "--since", "24h", "-o", "json")).values()
    assert found == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize(
    "bad",
    [
        b"not JSON\n",
        b"[]\n",
        b"\xff\xfe\n",
        b'{"kind":"usage"}\n',
        line(1).replace(b'"chat"', b"7"),
        line(1).replace(str(HOUR).encode(), b"-1"),
        line(1).replace(str(HOUR).encode(), b"1e300"),
        line(1).replace(b'"from":"2', b'"from":"x'),
        line(1)[:-40] + b"\n",
        line(1, minutes=-5),
    ],
)
def test_a_bad_line_is_told_of_and_stops_nothing(tmp_path: Path, bad: bytes) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(line(1) + bad + line(2))
    found = run("--audit", str(log))
    assert found.exit_code == 0
    assert found.stderr == f"{log}: left out 1 line that cannot be read\n"
    assert "2.000" in found.stdout


def test_a_log_comes_from_standard_input_too() -> None:
    found = run("--audit", "-", stdin=line(1) + line(1, tenant="lab"))
    assert [row.split() for row in found.stdout.splitlines()] == [
        ["TENANT", "POOL", "MODE", "GPU-HOURS"],
        ["chat", "(default)", "MIG", "1.000"],
        ["lab", "(default)", "MIG", "1.000"],
        ["total", "2.000"],
    ]


@pytest.mark.parametrize("arguments", [(), ("--audit", "/no/such/file"), ("--audit", "/")])
def test_a_log_that_cannot_be_read_is_one_line(arguments: tuple[str, ...]) -> None:
    found = run(*arguments)
    assert (found.exit_code, found.stderr.count("\n")) == (2, 1)
    assert found.stderr.startswith("error: ")


@pytest.mark.parametrize("since", ["", "7", "d", "1w", "-1d", "1.5h", "1d2x", "999999d"])
def test_a_time_that_makes_no_sense_is_refused(since: str) -> None:
    assert run("--audit", "-", "--since", since).exit_code == 2


@pytest.mark.parametrize("since", ["0d", "7d", "1d12h", "90m", "1h30m10s", "99999d"])
def test_times_are_days_hours_minutes_and_seconds(since: str) -> None:
    assert run("--audit", "-", "--since", since).exit_code == 0
