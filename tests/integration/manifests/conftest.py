# SPDX-License-Identifier: Apache-2.0
"""What the tests of rendered objects share; everything installed ends with its test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.files import CertificateFiles
from tests.controlplane import ControlPlane
from tests.integration.manifests.installation import Installation, make_certificates
from tests.support.webhook_recorder import WebhookRecorder


@pytest.fixture
def installation(control_plane: ControlPlane, namespace: str) -> Iterator[Installation]:
    made = Installation(control_plane, namespace)
    yield made
    made.remove()


@pytest.fixture
def certificates(tmp_path: Path) -> CertificateFiles:
    return make_certificates(tmp_path / "pki")


@pytest.fixture
def recorder(certificates: CertificateFiles) -> Iterator[WebhookRecorder]:
    with WebhookRecorder(certificates) as started:
        yield started
