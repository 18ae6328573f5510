# SPDX-License-Identifier: Apache-2.0
"""Free loopback ports.

They lie below the range that the kernel takes ports of outgoing connections from: otherwise a port
could be lost while a component is stopped and started again.
"""

import secrets
import socket
from pathlib import Path

from tests.controlplane.errors import ControlPlaneError

HOST = "127.0.0.1"

_LOWEST = 15000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_EPHEMERAL = 32768
_TRIES = 200


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different TCP ports of 127.0.0.1 that nothing listens on now."""
    highest = _first_ephemeral_port() - 1
    if highest - _LOWEST < _TRIES:
        raise ControlPlaneError(f"no ports are left between {_LOWEST} and {_EPHEMERAL_RANGE}")
    ports: set[int] = set()
    for _ in range(_TRIES * count):
        # By chance, so that control planes of several processes seldom try the same ones.
        port = _LOWEST + secrets.randbelow(highest - _LOWEST)
        if port not in ports and _is_free(port):
            ports.add(port)
        if len(ports) == count:
            return tuple(ports)
    raise ControlPlaneError(f"found no {count} free ports between {_LOWEST} and {highest}")


def _first_ephemeral_port() -> int:
    try:
        return int(_EPHEMERAL_RANGE.read_text(encoding="ascii").split()[0])
    except OSError:  # not Linux
        return _DEFAULT_EPHEMERAL


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
