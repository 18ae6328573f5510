# SPDX-License-Identifier: Apache-2.0
"""Memory of a process of Sluice that has listed very many pods from the real API server.

The pods are stored as running pods are: charged, on nodes, without the gate. Nothing runs them,
since the simulated kubelets are stopped meanwhile.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from tests.bench.pods import gpu_pod
from tests.bench.processes import BenchError
from tests.prove.connection import Connection
from tests.prove.scene import SHARED
from tests.prove.world import Json

_OWN: Final = ("serviceAccountName", "serviceAccount")


@dataclass(frozen=True, slots=True)
class Memory:
    """MiB: resident now, and at most so far (proc_pid_status(5): VmRSS, VmHWM)."""

    resident_mib: float
    peak_mib: float


def read_memory(pid: int) -> Memory:
    """Return the memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB$", text, re.MULTILINE))
    return Memory(int(found["VmRSS"]) / 1024, int(found["VmHWM"]) / 1024)


async def store_pods(
    connection: Connection, like: Json, nodes: list[str], count: int, connections: int
) -> None:
    """Create pods that look like one that Sluice has released, spread over nodes."""
    left = iter(running_pods(like, nodes, count))
    path = f"/api/v1/namespaces/{like['metadata']['namespace']}/pods"

    async def work() -> None:
        for pod in left:
            status, body = await connection.call("POST", path, pod)
            if status != HTTPStatus.CREATED:
                raise BenchError(f"a pod was not stored: {status} {body.get('message')}")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(connections):
            tasks.create_task(work())


def running_pods(like: Json, nodes: list[str], count: int) -> Iterator[Json]:
    """Yield pods of 2.8 kB of 100 Deployments, with what Sluice has written on `like`."""
    for number in range(count):
        pod = gpu_pod(number % 100)
        metadata, spec = pod["metadata"], pod["spec"]
        del metadata["ownerReferences"], metadata["generateName"]
        metadata["name"] = f"running-{number:05}"
        metadata["annotations"] |= like["metadata"]["annotations"]
        for key in _OWN:
            del spec[key]
        spec["nodeName"] = nodes[number % len(nodes)]
        spec["nodeSelector"] = like["spec"].get("nodeSelector", {})
        for kind in ("limits", "requests"):
            amounts = spec["containers"][0]["resources"][kind]
            spec["containers"][0]["resources"][kind] = {
                **{name: n for name, n in amounts.items() if name != "nvidia.com/gpu"},
                SHARED: "1",
            }
        yield pod
