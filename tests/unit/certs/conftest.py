# SPDX-License-Identifier: Apache-2.0
"""A fixed time, names, and a directory that ensure() has filled."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from certs.files import CertificateFiles, ensure
from certs.names import service_names

NOW: Final = datetime(2031, 5, 17, 12, 0, tzinfo=UTC)
NAMES: Final = service_names("sluice", "sluice")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "pki"


@pytest.fixture
def files(directory: Path) -> CertificateFiles:
    return ensure(directory, NAMES, NOW)
