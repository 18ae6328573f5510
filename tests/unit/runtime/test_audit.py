# SPDX-License-Identifier: Apache-2.0
"""The audit log as files: rotation, full disks, other processes, and a queue that never blocks."""

import json
import logging
import os
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from policies.model.decision import Decision, Verdict
from policies.model.request import Operation, Phase, Request, User
from policies.model.settings import Mode
from reconciler.runtime.audit import AuditLog, DropCause, QueueLimits
from reconciler.runtime.audit_file import AuditFileError, LineFile, Rotation
from reconciler.runtime.audit_record import AuditEntry

START = datetime(2031, 5, 17, 12, 0, tzinfo=UTC)
FAST = QueueLimits(batch_seconds=0.001)


class Counters:
    """Counts what is written and dropped."""

    def __init__(self) -> None:
        self.written = 0
        self.dropped: Counter[str] = Counter()

    def audit_written(self, lines: int) -> None:
        self.written += lines

    def audit_dropped(self, lines: int, cause: str) -> None:
        self.dropped[cause] += lines


def entry(uid: str = "uid", note: str = "") -> AuditEntry:
    request = Request(
        phase=Phase.MUTATE,
        operation=Operation.CREATE,
        group="",
        resource="pods",
        subresource="",
        namespace="chat",
        name="llm",
        user=User("jane"),
        object={},
        old_object=None,
        uid=uid,
    )
    decision = Decision(Verdict.ALLOWED, "7c1f", warnings=(note,))
    return AuditEntry(request, decision, Mode.ENFORCE, True, (note,), START, 1)


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def wait_for_lines(path: Path, count: int) -> None:
    until(lambda: path.read_bytes().count(b"\n") == count)


def wait_for_failures(counters: Counters, count: int) -> None:
    until(lambda: counters.dropped[DropCause.WRITE_FAILED] == count)


def uids(path: Path) -> list[str]:
    return [json.loads(line)["uid"] for line in path.read_bytes().splitlines()]


def stamped(at: datetime, text: str = "x") -> bytes:
    return b'{"time":"%b","text":"%b"}\n' % (at.isoformat().encode(), text.encode())


def test_lines_are_written_in_order_by_close_at_the_latest(tmp_path: Path) -> None:
    path, counters = tmp_path / "deep" / "audit.jsonl", Counters()
    log = AuditLog(str(path), counters)
    for number in range(500):
        log.record([entry(str(number))])
    assert log.close(10) is True
    assert uids(path) == [str(number) for number in range(500)]
    assert (counters.written, counters.dropped) == (500, {})


def test_lines_appear_without_waiting_for_close(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(str(path), Counters(), limits=FAST)
    for number in range(3):
        log.record([entry(str(number))])
        wait_for_lines(path, number + 1)
    log.close(10)


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    path, counters = tmp_path / "audit.jsonl", Counters()
    log = AuditLog(str(path), counters, limits=FAST)

    def record(name: int) -> None:
        for number in range(200):
            log.record([entry(f"{name}-{number}")])

    threads = [threading.Thread(target=record, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close(10)
    assert len(set(uids(path))) == counters.written == 1600


def test_only_the_owner_can_read_the_log_even_if_it_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "audit.jsonl"
    AuditLog(str(path), Counters()).close(10)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    AuditLog(str(path), Counters()).close(10)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_after_close_is_dropped_and_counted(tmp_path: Path) -> None:
    counters = Counters()
    log = AuditLog(str(tmp_path / "audit.jsonl"), counters)
    log.close(10)
    log.record([entry()])
    assert counters.dropped == {DropCause.CLOSED: 1}


def test_what_is_no_json_is_dropped_and_counted(tmp_path: Path) -> None:
    counters = Counters()
    log = AuditLog(str(tmp_path / "audit.jsonl"), counters)
    log.record([entry()._replace(warnings=({1}, {2}))])  # type: ignore[arg-type] # what must not be
    log.close(10)
    assert counters.dropped == {DropCause.UNSERIALIZABLE: 1}


def test_a_stuck_disk_fills_the_queue_and_blocks_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A pipe that nobody reads stands in for a disk that hangs."""
    pipe, counters = tmp_path / "pipe", Counters()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = AuditLog(str(pipe), counters, limits=QueueLimits(max_bytes=200_000, batch_seconds=0.001))
    os.set_blocking(log._file._descriptor, True)
    started = time.monotonic()
    for number in range(2000):
        log.record([entry(str(number), "x" * 200)])
    assert time.monotonic() - started < 2
    assert counters.dropped[DropCause.QUEUE_FULL] > 500
    complaints = [r for r in caplog.records if "lines dropped" in r.getMessage()]
    assert len(complaints) == 1
    assert log.close(0.05) is False
    assert "gave up on" in caplog.text
    os.set_blocking(reader, True)
    while log._writer.is_alive() and os.read(reader, 65536):
        pass
    os.close(reader)
    log._writer.join(10)


def test_a_full_device_drops_lines_and_says_so_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now, counters = [START], Counters()
    log = AuditLog("/dev/full", counters, limits=FAST, clock=lambda: now[0])
    for number in range(1, 6):
        log.record([entry(str(number))])
        wait_for_failures(counters, number)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "1 lines dropped: No space left on device" in caplog.text
    now[0] += timedelta(minutes=1)
    log.record([entry()])
    wait_for_failures(counters, 6)
    log.close(10)
    assert "5 lines dropped" in caplog.text
    assert counters.written == 0


LIMITED = """
import json, pathlib, resource, signal, sys
sys.path.insert(0, sys.argv[2])
from tests.unit.runtime.test_audit import Counters, FAST, entry, until
from reconciler.runtime.audit import AuditLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, counters = pathlib.Path(sys.argv[1]), Counters()
log = AuditLog(str(path), counters, limits=FAST)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
def phase(name, count):
    before = counters.written + counters.dropped.total()
    for number in range(count):
        log.record([entry(f"{name}-{number}")])
    until(lambda: counters.written + counters.dropped.total() == before + count)
phase("full", 100)
written = counters.written
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
phase("again", 10)
log.close(10)
print(json.dumps([written, counters.written, dict(counters.dropped)]))
"""


def test_after_a_full_disk_whole_lines_are_written_again(tmp_path: Path) -> None:
    """The limit on a file's size makes the kernel write a line in part, as a full disk does."""
    path = tmp_path / "audit.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(Path(__file__).parents[3])],
        capture_output=True,
        check=True,
        text=True,
        timeout=30,
    )
    before, after, dropped = json.loads(done.stdout)
    assert 0 < before < 100
    assert (after, dropped) == (before + 10, {"WriteFailed": 100 - before})
    found = uids(path)
    assert len(found) == after
    assert found[-10:] == [f"again-{number}" for number in range(10)]
    assert done.stderr.count("lines dropped") == 1
    assert "written again" in done.stderr


def test_rotation_by_size_keeps_so_many_files_and_loses_no_recent_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = LineFile(str(path), Rotation(max_bytes=100, keep=2), START)
    for number in range(10):
        assert file.write([stamped(START, f"{number:020d}")], START) == 1
    file.close()
    names = sorted(found.name for found in tmp_path.iterdir())
    assert names == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    kept = [tmp_path / "audit.jsonl.2", tmp_path / "audit.jsonl.1", path]
    texts = [json.loads(line)["text"] for each in kept for line in each.read_bytes().splitlines()]
    assert [int(text) for text in texts] == list(range(10 - len(texts), 10))
    assert all(each.stat().st_size <= 100 for each in kept)
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in kept)


def test_rotation_without_keeping_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = LineFile(str(path), Rotation(max_bytes=10, keep=0), START)
    for _ in range(3):
        file.write([stamped(START)], START)
    file.close()
    assert [found.name for found in tmp_path.iterdir()] == ["audit.jsonl"]
    assert path.read_bytes().count(b"\n") == 1


def test_rotation_by_age_counts_from_the_first_line_also_over_a_restart(tmp_path: Path) -> None:
    path, rotation = tmp_path / "audit.jsonl", Rotation(max_age=timedelta(hours=24))
    first = LineFile(str(path), rotation, START)
    first.write([stamped(START)], START)
    first.close()
    later = START + timedelta(hours=20)
    second = LineFile(str(path), rotation, later)
    second.write([stamped(later)], later)
    assert not Path(f"{path}.1").exists()
    latest = START + timedelta(hours=24)
    second.write([stamped(latest)], latest)
    second.close()
    assert Path(f"{path}.1").read_bytes().count(b"\n") == 2
    assert path.read_bytes() == stamped(latest)


@pytest.mark.parametrize(
    "first", [b"not json\n", b'{"time":"yesterday"}\n', b'{"time":"2031-05-17T12:00:00"}\n', b"\n"]
)
def test_a_file_of_unknown_age_is_as_old_as_its_opening(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(first)
    file = LineFile(str(path), Rotation(), START)
    file.write([stamped(START)], START + timedelta(hours=23))
    file.close()
    assert path.read_bytes() == first + stamped(START)


def test_a_line_torn_by_a_crash_does_not_spoil_the_next(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(stamped(START) + b'{"time":"2031-05-')
    file = LineFile(str(path), Rotation(), START)
    file.write([stamped(START)], START)
    file.close()
    assert path.read_bytes().splitlines()[-1] + b"\n" == stamped(START)


def test_a_file_that_somebody_else_moved_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = LineFile(str(path), Rotation(), START)
    file.write([stamped(START, "1")], START)
    path.rename(tmp_path / "moved")
    file.write([stamped(START, "2")], START)
    file.close()
    assert (tmp_path / "moved").read_bytes() == stamped(START, "1")
    assert path.read_bytes() == stamped(START, "2")


def test_lines_are_written_again_once_a_lost_directory_is_back(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.jsonl"
    file = LineFile(str(path), Rotation(), START)
    path.parent.rename(tmp_path / "moved")
    path.parent.write_bytes(b"in the way")
    for _ in range(2):
        with pytest.raises(OSError, match="audit log"):
            file.write([stamped(START, "lost")], START)
    path.parent.unlink()
    assert file.write([stamped(START, "kept")], START) == 1
    file.close()
    assert path.read_bytes() == stamped(START, "kept")


def test_two_processes_cannot_share_a_log(tmp_path: Path) -> None:
    path = str(tmp_path / "audit.jsonl")
    first = LineFile(path, Rotation(), START)
    with pytest.raises(AuditFileError, match=r"audit\.jsonl: in use by another process"):
        LineFile(path, Rotation(), START)
    first.close()
    LineFile(path, Rotation(), START).close()


def test_a_path_that_cannot_be_written_is_found_at_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path, words in [
        (tmp_path, "Is a directory"),
        (tmp_path / "file" / "x", "exists|directory"),
    ]:
        with pytest.raises(AuditFileError, match=words):
            AuditLog(str(path), Counters())


def test_a_pipe_without_a_reader_is_an_error_and_no_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AuditFileError, match="No such device"):
        AuditLog(str(tmp_path / "pipe"), Counters())


def test_a_dash_is_standard_output_which_stays_open(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    log = AuditLog("-", Counters())
    log.record([entry("on-stdout")])
    log.close(10)
    os.write(1, b"still open\n")
    written = capfdbinary.readouterr().out
    assert json.loads(written.splitlines()[0])["uid"] == "on-stdout"
    assert written.endswith(b"still open\n")
