# SPDX-License-Identifier: Apache-2.0
"""A control plane that writes down who asks for what, and an installation for each test."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from reconciler.manifests.options import Processes
from tests.controlplane import ControlPlane, nodes
from tests.integration.certificates.installation import Installation
from tests.integration.processes.api_log import ApiLog

Install = Callable[[Processes], Installation]


@pytest.fixture(scope="package")
def api_log(tmp_path_factory: pytest.TempPathFactory) -> ApiLog:
    return ApiLog(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="package")
def cluster(binaries: Mapping[str, Path], api_log: ApiLog) -> Iterator[ControlPlane]:
    with ControlPlane(binaries, api_log.options()) as started:
        started.create_nodes(nodes.fleet())
        yield started


@pytest.fixture
def team(cluster: ControlPlane) -> str:
    """The name of a fresh namespace of a tenant."""
    name = f"team-a-{secrets.token_hex(3)}"
    cluster.create_namespace(name, {"tenant": "team-a"})
    return name


@pytest.fixture
def install(cluster: ControlPlane, tmp_path: Path) -> Iterator[Install]:
    """Install Sluice: its objects are applied, and no process is started."""
    made: list[Installation] = []

    def install(processes: Processes) -> Installation:
        made.append(Installation(cluster, tmp_path, processes))
        made[-1].install()
        return made[-1]

    yield install
    for each in made:
        each.close()
