# SPDX-License-Identifier: Apache-2.0
"""An installation for each test, and pods to create through it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane
from tests.integration.certificates.installation import Installation


@pytest.fixture
def installation(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    """Sluice with its objects applied and no process started."""
    made = Installation(control_plane, tmp_path)
    try:
        made.install()
        yield made
    finally:
        made.close()
