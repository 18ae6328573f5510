# SPDX-License-Identifier: Apache-2.0
"""Where a rendered webhook has its certificate from.

It is the Secret that the leader keeps, which is watched, or one of files, which is mounted.
"""

from typing import Final

from reconciler.manifests.certificate_access import kept_certificates
from reconciler.manifests.deployment import Volume
from reconciler.manifests.options import ManifestOptions

CERTIFICATES_DIRECTORY: Final = "/etc/sluice/certificates"


def certificate_arguments(options: ManifestOptions) -> tuple[str, ...]:
    """Return what tells a webhook where its certificate is."""
    return kept_arguments(options) or (f"--certificates={CERTIFICATES_DIRECTORY}",)


def kept_arguments(options: ManifestOptions) -> tuple[str, ...]:
    """Return what tells a process where the leader keeps certificates, if it does."""
    kept = kept_certificates(options)
    if kept is None:
        return ()
    return (
        f"--certificates-secret={kept.namespace}/{kept.secret}",
        f"--installation={kept.installation}",
    )


def certificate_volumes(options: ManifestOptions) -> tuple[Volume, ...]:
    """Return the volume of the Secret, where it is mounted."""
    if options.keeps_certificates:
        return ()
    secret = {"secretName": f"{options.name}-tls", "defaultMode": 0o440}
    return (Volume("certificates", CERTIFICATES_DIRECTORY, {"secret": secret}),)
