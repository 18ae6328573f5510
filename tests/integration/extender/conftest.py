# SPDX-License-Identifier: Apache-2.0
"""A control plane whose real scheduler asks a real extender, by the rendered configuration."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.components import Options
from tests.controlplane.extender import ExtenderLaunch, ExtenderProcess


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A control plane and the extender that its scheduler asks."""

    control_plane: ControlPlane
    extender: ExtenderProcess


@pytest.fixture(scope="module")
def launch() -> ExtenderLaunch:
    """How the extender is started; modules have their own."""
    return ExtenderLaunch()


@pytest.fixture(scope="module")
def entry_changes() -> Mapping[str, object]:
    """How the scheduler's configuration differs from what is rendered."""
    return {}


@pytest.fixture(scope="module")
def scheduler_changes() -> Mapping[str, object]:
    """Other fields of the scheduler's configuration, beside its extender."""
    return {}


@pytest.fixture(scope="module")
def scheduled(
    binaries: Mapping[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    launch: ExtenderLaunch,
    entry_changes: Mapping[str, object],
    scheduler_changes: Mapping[str, object],
) -> Iterator[Scheduled]:
    """An empty cluster whose scheduler asks the extender."""
    with ExtenderProcess(tmp_path_factory.mktemp("extender"), launch) as extender:
        entry = {**extender.entry(), **entry_changes}
        options = Options(scheduler_config={"extenders": [entry], **scheduler_changes})
        with ControlPlane(binaries, options) as control_plane:
            extender.start(control_plane.kubeconfig)
            yield Scheduled(control_plane, extender)
            extender.stop()
