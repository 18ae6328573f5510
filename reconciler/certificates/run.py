# SPDX-License-Identifier: Apache-2.0
"""Puts the controller of certificates together and runs it."""

from certs.names import service_names
from reconciler.certificates.actuate import Installed
from reconciler.certificates.controller import CertificateController, Reports
from reconciler.certificates.metrics import CertificateMetrics
from reconciler.kube.tls_secret import KeptCertificates
from reconciler.leading import Leading


async def run_certificates(leading: Leading) -> None:
    """Keep the certificates until cancelled; return at once where they are from files.

    Nothing of the leader's picture is used, for the webhook may have to be made to work before
    that can be whole.
    """
    around = leading.surroundings
    if around.certificates is None:
        return
    metrics = CertificateMetrics(around.metrics, leading.now)
    reports = Reports(leading.now, leading.events, metrics)
    controller = CertificateController(
        around.client, installed(around.certificates), reports, runtime=around.runtime
    )
    await controller.run()


def installed(kept: KeptCertificates) -> Installed:
    """Return the names of an installation's objects, as its manifests render them."""
    return Installed(
        namespace=kept.namespace,
        secret=kept.secret,
        authority=kept.authority,
        configurations=kept.installation,
        names=service_names(kept.installation, kept.namespace),
        labels={
            "app.kubernetes.io/name": "sluice",
            "app.kubernetes.io/instance": kept.installation,
        },
    )
