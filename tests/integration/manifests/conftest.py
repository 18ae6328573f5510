# SPDX-License-Identifier: Apache-2.0
"""What the tests of rendered objects share; everything installed ends with its test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.files import CertificateFiles
from reconciler.manifests.render import render_groups
from tests.controlplane import ControlPlane
from tests.integration.manifests.calls import GPU, PLAIN
from tests.integration.manifests.installation import (
    Installation,
    entry_paths,
    make_certificates,
)
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


@pytest.fixture
def registered(
    installation: Installation, recorder: WebhookRecorder, certificates: CertificateFiles
) -> Installation:
    """All webhooks, those for clusters without MutatingAdmissionPolicy too."""
    options = installation.recorded_options(
        recorder, certificates, has_mutating_admission_policy=False
    )
    installation.apply(entry_paths(render_groups(options)["webhooks"]))
    installation.wait_for_calls(recorder, GPU | PLAIN)
    return installation
