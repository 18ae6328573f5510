# SPDX-License-Identifier: Apache-2.0
"""Starts the programs of a measurement on cores of their own, and reads what CPU time they took."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """A measurement that cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server under measurement."""

    name: str
    port: int
    process: subprocess.Popen[bytes]

    def cpu_seconds(self) -> float:
        """Return the CPU time of all its threads, user and system, in steps of 10 ms.

        Source: proc_pid_stat(5), fields 14 and 15.
        """
        text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def started(name: str, core: int, port: int, *arguments: object) -> Iterator[Server]:
    """Run a Python program on one core until the block ends; it must listen on the port."""
    command = [sys.executable, "-m", "tests.bench.pinned", str(core), *map(str, arguments)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            _wait_open(name, port, process)
            yield Server(name, port, process)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def run(core: int, *arguments: object) -> str:
    """Run a Python program on one core to its end and return its output. Raises BenchError."""
    command = [sys.executable, "-m", "tests.bench.pinned", str(core), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BenchError(f"{' '.join(command)} ended with code {done.returncode}")
    return done.stdout


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


def cores() -> tuple[int, int]:
    """Return the core of the servers and that of the load; the same one if there is only one."""
    available = sorted(os.sched_getaffinity(0))
    return available[0], available[-1]


def _wait_open(name: str, port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise BenchError(f"{name} ended at its start with code {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(_POLL_SECONDS)
        else:
            return
    raise BenchError(f"{name} does not listen on port {port} after {_START_SECONDS:g} s")
