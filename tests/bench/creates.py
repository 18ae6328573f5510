# SPDX-License-Identifier: Apache-2.0
"""Creates of GPU pods per second through a real API server: none, bare, Sluice.

`none` has no webhook, `bare` one that allows everything in both passes, `sluice` is Sluice as it
is installed. The pods carry a gate of their own, so that neither scheduler nor quota competes
with the creates for the machine. Ends with one line of JSON. `python -m tests.bench.creates`
"""

import argparse
import asyncio
import base64
import json
import os
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import aiohttp

from certs.files import ensure
from certs.names import LOOPBACK
from tests.bench.machine import describe_machine
from tests.bench.pods import NAMESPACE, gpu_pod
from tests.bench.processes import BenchError, cores, free_port, started
from tests.controlplane import ControlPlane, ControlPlaneError, find_binaries, nodes
from tests.controlplane.installed import InstalledSluice

HERE: Final = Path(__file__).resolve().parent
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_HOLD: Final = {"name": "bench.sluice.dev/hold"}
_REGISTERED_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Result:
    """Creates of one round."""

    creates_per_second: float
    p50_ms: float
    p99_ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table and a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.creates", description=__doc__)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--pods", type=int, default=600, help="creates in a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    try:
        results = _measure(options.connections, options.pods, options.rounds)
    except (BenchError, ControlPlaneError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _print(results, vars(options))
    return 0


def _measure(connections: int, pods: int, rounds: int) -> dict[str, list[Result]]:
    binaries = find_binaries(os.environ, print)
    results: dict[str, list[Result]] = {"none": [], "bare": [], "sluice": []}
    with tempfile.TemporaryDirectory() as temporary, ControlPlane(binaries) as control_plane:
        control_plane.create_nodes(nodes.fleet())
        control_plane.create_namespace(NAMESPACE)
        setups = _setups(control_plane, Path(temporary))
        for number in range(rounds):
            for name, setup in setups.items():
                with setup():
                    _create(control_plane, connections, pods // 10)  # to warm up
                    found = _create(control_plane, connections, pods)
                    asyncio.run(_empty(control_plane))
                results[name].append(found)
                sys.stdout.write(
                    f"round {number + 1} {name:7} {found.creates_per_second:6.0f} creates/s"
                    f"  p50 {found.p50_ms:6.1f} ms  p99 {found.p99_ms:6.1f} ms\n"
                )
                sys.stdout.flush()
    return results


def _setups(
    control_plane: ControlPlane, directory: Path
) -> dict[str, Callable[[], AbstractContextManager[object]]]:
    return {
        "none": nullcontext,
        "bare": lambda: _bare(control_plane, directory / "bare"),
        "sluice": lambda: InstalledSluice(control_plane, HERE / "policies", directory / "sluice"),
    }


@contextmanager
def _bare(control_plane: ControlPlane, directory: Path) -> Iterator[None]:
    """Run the bare server and let the API server call it for both passes."""
    files = ensure(directory, LOOPBACK, datetime.now(UTC))
    port = free_port()
    program = ("-m", "tests.bench.bare", files.certificate, files.key, port)
    configurations = [
        _configuration("Mutating", "mutate", port, files.ca_certificate.read_bytes()),
        _configuration("Validating", "validate", port, files.ca_certificate.read_bytes()),
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": configurations}
    with started("bare", cores()[0], port, *program) as server:
        before = server.cpu_seconds()
        control_plane.kubectl("create", "--filename=-", stdin=listed)
        try:
            _wait_called(control_plane, lambda: server.cpu_seconds() > before + 0.05)
            yield
        finally:
            control_plane.kubectl("delete", "--filename=-", stdin=listed)


def _configuration(kind: str, path: str, port: int, ca: bytes) -> dict[str, Any]:
    webhook = {
        "name": f"{path}.bare.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/{path}",
            "caBundle": base64.b64encode(ca).decode(),
        },
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }
        ],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": f"bare-{path}"},
        "webhooks": [webhook],
    }


def _wait_called(control_plane: ControlPlane, is_called: Callable[[], bool]) -> None:
    """Create pods until the server is seen to work: configurations take a moment to act."""
    deadline = time.monotonic() + _REGISTERED_SECONDS
    while not is_called():
        if time.monotonic() > deadline:
            raise BenchError("the API server does not call the bare webhook")
        _create(control_plane, 4, 20)


def _create(control_plane: ControlPlane, connections: int, pods: int) -> Result:
    return asyncio.run(_create_all(control_plane, connections, pods))


async def _create_all(control_plane: ControlPlane, connections: int, pods: int) -> Result:
    left = iter(range(pods))
    latencies: list[float] = []

    async def create(session: aiohttp.ClientSession) -> None:
        for _ in left:
            started_at = time.perf_counter()
            async with session.post(_PODS, json=_POD) as answered:
                text = await answered.text()
            latencies.append(time.perf_counter() - started_at)
            if answered.status != HTTPStatus.CREATED:
                raise BenchError(f"a pod was not created: {text[:500]}")

    async with _session(control_plane, connections) as session:
        begun = time.perf_counter()
        await asyncio.gather(*(create(session) for _ in range(connections)))
        elapsed = time.perf_counter() - begun
    latencies.sort()
    return Result(
        creates_per_second=pods / elapsed,
        p50_ms=1000 * latencies[len(latencies) // 2],
        p99_ms=1000 * latencies[len(latencies) * 99 // 100],
    )


async def _empty(control_plane: ControlPlane) -> None:
    """Delete all pods, so that every round begins alike."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    async with (
        _session(control_plane, 1) as session,
        session.delete(_PODS, json=options) as answered,
    ):
        if answered.status != HTTPStatus.OK:
            raise BenchError(f"the pods were not deleted: {(await answered.text())[:500]}")


def _session(control_plane: ControlPlane, connections: int) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cadata=control_plane.ca_bundle.decode())
    return aiohttp.ClientSession(
        control_plane.url,
        connector=aiohttp.TCPConnector(ssl=context, limit=connections),
        headers={"Authorization": f"Bearer {control_plane.token}"},
    )


def _held_pod() -> dict[str, Any]:
    """Return the pod of the other benchmark, without what this cluster does not have."""
    pod = gpu_pod()
    del pod["spec"]["serviceAccountName"], pod["spec"]["serviceAccount"]
    del pod["metadata"]["ownerReferences"]
    pod["spec"]["schedulingGates"] = [_HOLD]
    return pod


_POD: Final = _held_pod()


def _print(results: dict[str, list[Result]], options: dict[str, object]) -> None:
    report: dict[str, Any] = {"bench": "creates"}
    sys.stdout.write("\n| webhook | creates/s | p50 ms | p99 ms |\n| --- | --- | --- | --- |\n")
    for name, found in results.items():
        median = {
            field: round(statistics.median(getattr(each, field) for each in found), 2)
            for field in Result.__dataclass_fields__
        }
        report[name] = median
        sys.stdout.write(
            f"| {name} | {median['creates_per_second']:.0f} | {median['p50_ms']:.1f} "
            f"| {median['p99_ms']:.1f} |\n"
        )
    sys.stdout.write("\n" + json.dumps(report | options | describe_machine()) + "\n")


if __name__ == "__main__":
    sys.exit(main())
