# SPDX-License-Identifier: Apache-2.0
"""Fixtures around the real control plane: one for the session, a fresh namespace for each test."""

import os
import re
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import pytest

from policies.model.workload import WorkloadKind
from reconciler.kube.access import KubeconfigAccess
from reconciler.kube.client import Client
from tests.controlplane import ControlPlane, ControlPlaneError, find_binaries, nodes
from tests.controlplane.programs import CONTROL_PLANE, MONITORING
from tests.integration.sluice.rest import Rest
from tests.support import custom_kinds as supported
from tests.support.breakable_link import BreakableLink, run_link
from tests.support.kube_access import LinkedAccess

_HERE = Path(__file__).parent
_PROGRAMS = pytest.StashKey[dict[str, Mapping[str, Path]]]()
_KITS = {"binaries": CONTROL_PLANE, "monitoring": MONITORING}
"""By the fixture that gives their programs."""


class MakeNamespace(Protocol):
    """Makes a namespace with these labels and returns its name."""

    def __call__(self, labels: Mapping[str, str] | None = None) -> str: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.integration)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the binaries before the first test: no test's time limit covers a build."""
    names = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly:
        return
    found = session.config.stash.setdefault(_PROGRAMS, {})
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        try:
            for fixture, kit in _KITS.items():
                if fixture in names:
                    found[fixture] = find_binaries(os.environ, _report, kit)
        except ControlPlaneError as error:
            raise pytest.UsageError(str(error)) from error


@pytest.fixture(scope="session")
def binaries(request: pytest.FixtureRequest) -> Mapping[str, Path]:
    """The programs of the control plane by name."""
    return request.config.stash[_PROGRAMS]["binaries"]


@pytest.fixture(scope="session")
def monitoring(request: pytest.FixtureRequest) -> Mapping[str, Path]:
    """`prometheus` and `promtool`."""
    return request.config.stash[_PROGRAMS]["monitoring"]


@pytest.fixture(scope="session")
def control_plane(binaries: Mapping[str, Path]) -> Iterator[ControlPlane]:
    """A running control plane with one Ready node of every kind; tests must leave it as it was."""
    with ControlPlane(binaries) as started:
        started.create_nodes(nodes.fleet())
        yield started


@pytest.fixture(scope="session")
def custom_kinds(control_plane: ControlPlane) -> Iterator[tuple[WorkloadKind, ...]]:
    """The custom kinds of workloads, which the cluster knows but no controller acts on."""
    found = supported.custom_kinds()
    listed = {"apiVersion": "v1", "kind": "List", "items": supported.definitions(found)}
    control_plane.kubectl("create", "--filename=-", stdin=listed)
    names = [f"{kind.resource}.{kind.group}" for kind in found]
    control_plane.wait_kinds(names)
    yield found
    control_plane.kubectl("delete", "--wait=false", "crd", *names)


@pytest.fixture
def make_namespace(
    control_plane: ControlPlane, request: pytest.FixtureRequest
) -> Iterator[MakeNamespace]:
    """A function from optional labels to the name of a new namespace; they end with the test."""
    control_plane.components.check()
    made: list[str] = []

    def make(labels: Mapping[str, str] | None = None) -> str:
        name = f"{_slug(request.node.name)}-{secrets.token_hex(3)}"
        control_plane.create_namespace(name, labels)
        made.append(name)
        return name

    yield make
    if made:
        control_plane.kubectl("delete", "namespace", *made, "--wait=false", "--ignore-not-found")


@pytest.fixture
def namespace(make_namespace: MakeNamespace) -> str:
    """The name of a fresh namespace in which pods can be made."""
    return make_namespace()


def _slug(test_name: str) -> str:
    """As much of a test's name as a namespace's name can hold."""
    return re.sub(r"[^a-z0-9]+", "-", test_name.lower()).strip("-")[:50].strip("-")


def _report(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the person waits for minutes


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """Sluice's own client, as the cluster's admin."""
    async with Client(KubeconfigAccess(str(control_plane.kubeconfig))) as opened:
        yield opened


@pytest.fixture
async def link(control_plane: ControlPlane) -> AsyncIterator[BreakableLink]:
    """What stands between the API server and `linked`."""
    port = urlsplit(control_plane.url).port
    assert port
    async with run_link(port) as opened:
        yield opened


@pytest.fixture
async def linked(control_plane: ControlPlane, link: BreakableLink) -> AsyncIterator[Client]:
    """A client whose connections a test can break, while `client` goes on."""
    async with Client(LinkedAccess(str(control_plane.kubeconfig), link)) as opened:
        yield opened


@pytest.fixture
def rest(control_plane: ControlPlane) -> Iterator[Rest]:
    """A connection to the API server, as the cluster's admin."""
    with closing(Rest(control_plane)) as connection:
        yield connection
