# SPDX-License-Identifier: Apache-2.0
"""`sluice usage`: GPU-hours by tenant, pool and mode, summed from the audit log.

Files are read line by line, rotated ones too. A line that cannot be read is counted and told of.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final, TextIO

import orjson
from rich.console import Console
from rich.table import Table

from policies.quota.metering import Key
from reconciler.cli.terminal import CommandError
from reconciler.runtime.audit_usage import KIND

STDIN: Final = "-"
_MICRO_PER_HOUR: Final = 3_600_000_000
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class Usage:
    """Millionths of GPU-seconds between two times, and how many lines of which file were bad."""

    since: datetime
    until: datetime
    micro: Counter[Key] = field(default_factory=Counter)
    lines: int = 0
    bad: Counter[str] = field(default_factory=Counter)


def files_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return these files and those that they were rotated to, each once. Raises CommandError."""
    found: dict[tuple[int, int], str] = {}
    for name in names:
        if name == STDIN:
            found[(-1, -1)] = name
            continue
        rotated = _rotated(Path(name))
        if not rotated:
            raise CommandError(f"{name}: no such file")
        for path in rotated:
            status = path.stat()
            found.setdefault((status.st_dev, status.st_ino), str(path))
    return tuple(found.values())


def read_usage(names: Iterable[str], since: datetime, until: datetime) -> Usage:
    """Sum up what lies between two times; of a span that lies there in part, that part.

    Raises CommandError for a file that cannot be read.
    """
    usage = Usage(since, until)
    for name in names:
        try:
            if name == STDIN:
                _read(sys.stdin.buffer, "standard input", usage)
            else:
                with Path(name).open("rb") as stream:
                    _read(stream, name, usage)
        except OSError as error:
            raise CommandError(f"{name}: {(error.strerror or str(error)).lower()}") from error
    return usage


def print_usage(usage: Usage, console: Console) -> None:
    """Print a table, with a total where that says more."""
    table = Table("TENANT", "POOL", "MODE", box=None, pad_edge=False, header_style="bold")
    table.add_column("GPU-HOURS", justify="right")
    rows = sorted(usage.micro.items())
    for key, micro in rows:
        table.add_row(key.tenant or "(none)", key.pool or "(default)", key.mode, _hours(micro))
    if len(rows) > 1:
        table.add_row("total", "", "", _hours(sum(usage.micro.values())), style="bold")
    if rows:
        console.print(table)
    else:
        console.print("no usage has been written down in this time")


def print_usage_json(usage: Usage, stream: TextIO) -> None:
    """Print one JSON object."""
    plain = {
        "since": usage.since.isoformat(),
        "until": usage.until.isoformat(),
        "usage": [
            {
                **key._asdict(),
                "microGpuSeconds": micro,
                "gpuHours": round(micro / _MICRO_PER_HOUR, 6),
            }
            for key, micro in sorted(usage.micro.items())
        ],
        "badLines": dict(usage.bad),
    }
    json.dump(plain, stream, indent=2)
    stream.write("\n")


def complaints(usage: Usage) -> Iterator[str]:
    """Yield a line for each file with lines that cannot be read."""
    for name, count in usage.bad.items():
        yield f"{name}: left out {count} line{'' if count == 1 else 's'} that cannot be read"


def _rotated(path: Path) -> list[Path]:
    """Return a file and its elder ones, as the audit log names them."""
    elder = [
        found
        for found in path.parent.glob(f"{_escaped(path.name)}.*")
        if found.name[len(path.name) + 1 :].isdecimal()
    ]
    return [*elder, *([path] if path.exists() else [])]


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _read(stream: BinaryIO, name: str, usage: Usage) -> None:
    for line in stream:
        usage.lines += 1
        try:
            _add(line, usage)
        except (ValueError, TypeError, KeyError, OverflowError):
            usage.bad[name] += 1


def _add(line: bytes, usage: Usage) -> None:
    if not line.strip():
        return
    record = orjson.loads(line)
    if not isinstance(record, dict):
        raise TypeError(record)
    if record.get("kind") != KIND:
        return
    begin, end = _time(record["from"]), _time(record["until"])
    micro = record["microGpuSeconds"]
    key = Key(*(_text(record[part]) for part in ("tenant", "pool", "mode")))
    if type(micro) is not int or micro < 0 or end < begin:
        raise ValueError(record)
    if part := _within(begin, end, micro, usage):
        usage.micro[key] += part


def _within(begin: datetime, end: datetime, micro: int, usage: Usage) -> int:
    """Return what of a span lies between the two times, pro rata."""
    first, last = max(begin, usage.since), min(end, usage.until)
    if first > last or (first == last and begin != end):
        return 0
    if begin == end:
        return micro
    return micro * ((last - first) // _MICROSECOND) // ((end - begin) // _MICROSECOND)


def _time(value: object) -> datetime:
    at = datetime.fromisoformat(_text(value))
    if at.tzinfo is None:
        raise ValueError(value)
    return at.astimezone(UTC)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _hours(micro: int) -> str:
    return f"{micro / _MICRO_PER_HOUR:,.3f}"
