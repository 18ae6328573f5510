# SPDX-License-Identifier: Apache-2.0
"""Sluice installed once for this folder, and fresh namespaces of its tenants."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import pytest

from certs.files import CertificateFiles, ensure
from certs.names import LOOPBACK
from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, new_team

_POLICIES: Final = Path(__file__).with_name("policies")


class MakeTeam(Protocol):
    """Makes a namespace of a tenant, which Sluice knows of when this returns."""

    def __call__(self, tenant: str) -> Team: ...


@pytest.fixture(scope="package")
def sluice(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Sluice as its manifests install it; a test that breaks it mends it again."""
    directory = tmp_path_factory.mktemp("sluice")
    shutil.copytree(_POLICIES, directory / "policies")
    with InstalledSluice(control_plane, directory / "policies", directory / "run") as installed:
        yield Running(installed, directory / "policies")


@pytest.fixture
def make_team(sluice: Running, control_plane: ControlPlane, rest: Rest) -> Iterator[MakeTeam]:
    """A function from a tenant's name to a fresh namespace of it; they end with the test."""
    sluice.check()
    control_plane.components.check()
    made: list[Team] = []

    def make(tenant: str) -> Team:
        team = new_team(control_plane, rest, tenant)
        made.append(team)
        return team

    yield make
    for team in made:
        rest.request("DELETE", team.path)


@pytest.fixture
def team_a(make_team: MakeTeam) -> Team:
    """A namespace where everything is a time slice."""
    return make_team("team-a")


@pytest.fixture
def team_m(make_team: MakeTeam) -> Team:
    """A namespace where everything is a MIG instance."""
    return make_team("team-m")


@pytest.fixture
def team_t(make_team: MakeTeam) -> Team:
    """A namespace where training gets whole GPUs."""
    return make_team("team-t")


@pytest.fixture
def stranger(make_team: MakeTeam) -> Team:
    """A namespace of no tenant."""
    return make_team("none")


@pytest.fixture(scope="package")
def other_files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """Certificates for somebody else's webhook."""
    directory = tmp_path_factory.mktemp("other-webhook")
    return ensure(directory, LOOPBACK, datetime.now(UTC))
