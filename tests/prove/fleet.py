# SPDX-License-Identifier: Apache-2.0
"""Several replicas of `sluice run` behind one address, of which one leads.

They share an account, policies and certificates, and their wall clock can be moved.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from certs.files import ensure
from certs.names import LOOPBACK
from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import Command, Process, ProcessGroup
from tests.controlplane.replica import ROOT, Launch, Replica
from tests.prove.clock import WallClock

LEASE = ("sluice", "sluice")
"""Namespace and name of the Lease by which they elect."""

_READY_SECONDS = 30.0


class Fleet:
    """The replicas by the identity that they use in the Lease."""

    def __init__(self, replicas: dict[str, Replica], group: ProcessGroup, clock: WallClock) -> None:
        self.replicas = replicas
        self.clock = clock
        self._group = group

    def kill(self, identity: str) -> None:
        """End one at once, as a crash would."""
        self.replicas[identity].kill()

    def start(self, identity: str) -> None:
        """Start one that was killed."""
        self.replicas[identity].start(self._group)

    def freeze(self, identity: str) -> None:
        """Have one stand still."""
        self.replicas[identity].freeze()

    def thaw(self, identity: str) -> None:
        """Have it go on."""
        self.replicas[identity].thaw()

    def check(self) -> None:
        """Raise ComponentError if one has ended by itself."""
        for replica in self.replicas.values():
            replica.check()


@contextmanager
def installed_fleet(
    control_plane: ControlPlane, policies: Path, directory: Path, count: int
) -> Iterator[Fleet]:
    """Install Sluice with so many replicas, in a cluster that ends with them."""
    directory.mkdir(parents=True)
    clock = WallClock(directory / "clock")
    (front,) = free_ports(1)
    sluice = InstalledSluice(control_plane, policies, directory, _launch("sluice-0", clock), front)
    # The balancer trusts the authority that the replicas serve with, so that must be there first.
    ca = ensure(sluice.certificates, LOOPBACK, datetime.now(UTC)).ca_certificate
    replicas = {"sluice-0": sluice.replica}
    ports = free_ports(count - 1) if count > 1 else ()
    backends = (sluice.port, *ports)
    with _balancing(front, ca, backends, directory), sluice:
        sluice.leave_objects()
        for number, port in enumerate(ports, 1):
            name = f"sluice-{number}"
            replicas[name] = sluice.add_replica(name, _launch(name, clock), port)
        yield Fleet(replicas, sluice.group, clock)


def _launch(identity: str, clock: WallClock) -> Launch:
    return Launch(("--identity", identity), clock.environment)


@contextmanager
def _balancing(front: int, ca: Path, ports: tuple[int, ...], directory: Path) -> Iterator[None]:
    arguments = (sys.executable, "-m", "tests.prove.balancer", str(front), str(ca))
    command = Command("balancer", (*arguments, *map(str, ports)), front, "/readyz")
    group = ProcessGroup()
    process = Process.start(command, directory / "balancer.log", group, ROOT)
    try:
        yield
    finally:
        process.kill()
        group.close()
