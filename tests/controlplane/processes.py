# SPDX-License-Identifier: Apache-2.0
"""Starts processes that cannot outlive this one, waits for their health, shows their logs.

Which programs these are and what they are told is not here.
"""

import http.client
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Self

from tests.controlplane.errors import ComponentError
from tests.controlplane.ports import HOST

POLL_SECONDS = 0.02

_SHOWN_LINES = 30
_PROBE_SECONDS = 2.0

# Reads until its standard input ends, as it does when this process ends in whatever way. It then
# ends all that was started into its process group, and removes the folders that it was given.
_GUARD = 'trap "" TERM INT HUP; read -r _; kill -TERM 0; rm -rf -- "$@"; kill -KILL 0'


@dataclass(frozen=True, slots=True)
class Command:
    """What to start, and the port and path where it says that it is healthy.

    `healthy_status` is another one for those that let nobody in without a password.
    """

    name: str
    arguments: tuple[str, ...]
    port: int
    health_path: str
    is_tls: bool = True
    healthy_status: int = HTTPStatus.OK


class ProcessGroup:
    """A process group that dies with this process, even with a SIGKILL.

    (A parent-death signal would follow the thread that started the process, not the process.)
    """

    def __init__(self, remove: tuple[Path, ...] = ()) -> None:
        """Start the guard; `remove` names folders that it deletes once all have ended."""
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", *map(str, remove)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    @property
    def id(self) -> int:
        """The process group's number."""
        return self._guard.pid

    def close(self) -> None:
        """End everything that is still in the group, and wait for the guard's own end."""
        if self._guard.stdin:
            self._guard.stdin.close()
        self._guard.wait()


class Process:
    """One running component, with its output in a log file."""

    def __init__(self, command: Command, log: Path, popen: "subprocess.Popen[bytes]") -> None:
        self.command = command
        self.log = log
        self._popen = popen

    @classmethod
    def start(
        cls,
        command: Command,
        log: Path,
        group: ProcessGroup,
        home: Path,
        extra: Mapping[str, str] | None = None,
    ) -> Self:
        """Start `command` in `group`; its output is appended to `log`, and `home` is its HOME.

        `extra` are further variables of its environment.
        """
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), **(extra or {})}
        output: IO[bytes]
        with log.open("ab") as output:
            popen = subprocess.Popen(
                command.arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=home,
                env=environment,
                process_group=group.id,
            )
        return cls(command, log, popen)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._popen.pid

    def check(self) -> None:
        """Raise a ComponentError with the end of the log if the process has ended."""
        code = self._popen.poll()
        if code is not None:
            raise ComponentError(
                f"{self.command.name} has died ({_ending(code)}); {self.log_tail()}"
            )

    def wait_healthy(self, tls: ssl.SSLContext, token: str, seconds: float) -> None:
        """Wait at most `seconds` for a 200 of the health endpoint; fail if the process ends."""
        deadline = time.monotonic() + seconds
        while True:
            self.check()
            answer = self._probe(tls, token)
            if answer is None:
                return
            if time.monotonic() > deadline:
                raise ComponentError(
                    f"{self.command.name} was not healthy within {seconds:g} s: {answer}; "
                    f"{self.log_tail()}"
                )
            time.sleep(POLL_SECONDS)

    def end(self, seconds: float) -> None:
        """Ask the process to end (SIGTERM), and kill it if it has not after `seconds`."""
        self._popen.terminate()
        try:
            self._popen.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process at once (SIGKILL), as a crash would."""
        self._popen.kill()
        self._popen.wait()

    def log_tail(self) -> str:
        """The end of the log, with a heading that says where all of it is."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        lines = text.rstrip().splitlines()[-_SHOWN_LINES:]
        return f"the end of {self.log}:\n" + "\n".join(lines)

    def _probe(self, tls: ssl.SSLContext, token: str) -> str | None:
        """Return None if healthy, else what was seen."""
        command = self.command
        connection = (
            http.client.HTTPSConnection(HOST, command.port, timeout=_PROBE_SECONDS, context=tls)
            if command.is_tls
            else http.client.HTTPConnection(HOST, command.port, timeout=_PROBE_SECONDS)
        )
        try:
            connection.request(
                "GET", command.health_path, headers={"Authorization": f"Bearer {token}"}
            )
            response = connection.getresponse()
            body = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            connection.close()
        if response.status == command.healthy_status:
            return None
        return f"HTTP {response.status}: {body[:500]}"


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
