# SPDX-License-Identifier: Apache-2.0
"""Sluice installed once for this folder, and fresh namespaces of its tenants."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.integration.sluice.objects import pod
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, until

if TYPE_CHECKING:
    from tests.integration.conftest import MakeNamespace

_POLICIES = Path(__file__).with_name("policies")


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
def make_team(
    sluice: Running, control_plane: ControlPlane, make_namespace: "MakeNamespace"
) -> MakeTeam:
    """A function from a tenant's name to a fresh namespace of it."""
    sluice.check()

    def make(tenant: str) -> Team:
        team = Team(control_plane, make_namespace({"tenant": tenant}))
        until(lambda: _is_known(team), "Sluice's notice of a new namespace")
        return team

    return make


def _is_known(team: Team) -> bool:
    answer = team.apply(pod(name="probe"), dry_run=True)
    return "[NamespaceUnknown]" not in " ".join((answer.error, *answer.warnings))


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
