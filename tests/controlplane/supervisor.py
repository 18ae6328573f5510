# SPDX-License-Identifier: Apache-2.0
"""Keeps the components of one control plane: starts them, breaks and mends single ones.

What a component is told is in `components`; how one process is kept is in `processes`.
"""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.controlplane import components
from tests.controlplane.components import Layout
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.processes import Command, Process, ProcessGroup

_END_SECONDS = 10.0

# The order in which they start; what stands together starts together.
_PHASES: tuple[tuple[Callable[[Layout], Command], ...], ...] = (
    (components.etcd,),
    (components.apiserver,),
    (components.controller_manager, components.scheduler, components.kwok),
)


class Supervisor:
    """The processes of one control plane. `token` opens the health endpoints."""

    def __init__(self, layout: Layout, ca: bytes, token: str) -> None:
        self._layout = layout
        self._tls = ssl.create_default_context(cadata=ca.decode("ascii"))
        self._token = token
        self._commands: dict[str, Command] = {}
        self._running: dict[str, Process] = {}
        self._group: ProcessGroup | None = None

    def start(self, remove: tuple[Path, ...] = ()) -> None:
        """Start all and wait until each is healthy; `remove` names folders that end with them."""
        self._group = ProcessGroup(remove)
        for phase in _PHASES:
            for make in phase:
                command = make(self._layout)
                self._commands[command.name] = command
                self._spawn(command)
            for process in list(self._running.values()):
                self._wait_healthy(process)

    def stop(self) -> None:
        """End all components at once; calling it again does nothing.

        They are killed: nothing reads their state again, and an orderly end takes up to 20 s.
        """
        for process in self._running.values():
            process.kill()
        self._running.clear()
        if self._group is not None:
            self._group.close()
            self._group = None

    @property
    def pids(self) -> Mapping[str, int]:
        """The process numbers of the components that were started and not stopped."""
        return {name: process.pid for name, process in self._running.items()}

    def check(self) -> None:
        """Raise a ComponentError with the end of its log if a component has died by itself."""
        for process in self._running.values():
            process.check()

    def start_component(self, name: str) -> None:
        """Start one that was stopped or killed, on its old port, and wait until it is healthy."""
        if name in self._running:
            raise ControlPlaneError(f"{name} is running already")
        self._wait_healthy(self._spawn(self._command(name)))

    def stop_component(self, name: str) -> None:
        """End one component in an orderly way; the others go on."""
        self._take(name).end(_END_SECONDS)

    def kill_component(self, name: str) -> None:
        """Kill one component, as a crash would; the others go on."""
        self._take(name).kill()

    def _command(self, name: str) -> Command:
        if name not in self._commands:
            known = ", ".join(self._commands) or "none"
            raise ControlPlaneError(f"there is no component {name!r}; started were: {known}")
        return self._commands[name]

    def _take(self, name: str) -> Process:
        self._command(name)
        if name not in self._running:
            raise ControlPlaneError(f"{name} is not running")
        return self._running.pop(name)

    def _spawn(self, command: Command) -> Process:
        if self._group is None:
            raise ControlPlaneError("the control plane has been stopped")
        files = self._layout.files
        process = Process.start(command, files.log(command.name), self._group, files.directory)
        self._running[command.name] = process
        return process

    def _wait_healthy(self, process: Process) -> None:
        process.wait_healthy(self._tls, self._token, self._layout.options.start_seconds)
