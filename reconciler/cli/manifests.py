# SPDX-License-Identifier: Apache-2.0
"""`sluice manifests`: an installation as YAML, from the options of the command line."""

from dataclasses import replace
from pathlib import Path
from typing import TextIO

from certs.files import CertificateFiles, read_ca_bundle
from reconciler.cli.inputs import policies_from
from reconciler.manifests.options import ManifestOptions, TlsSecret
from reconciler.manifests.render import render
from reconciler.manifests.text import to_yaml
from reconciler.runtime.loading import Compiler


def with_certificates(options: ManifestOptions, directory: Path) -> ManifestOptions:
    """Return the options with the CA bundle and the Secret of a directory of certificates.

    A webhook outside the cluster (`url`) keeps its own files, so no Secret is made for it.
    Raises CertificateError, OSError.
    """
    files = CertificateFiles.in_directory(directory)
    bundle = read_ca_bundle(files.ca_certificate)
    if options.url is not None:
        return replace(options, ca_bundle=bundle)
    secret = TlsSecret(bundle, files.certificate.read_bytes(), files.key.read_bytes())
    return replace(options, ca_bundle=bundle, tls=secret)


def with_settings(options: ManifestOptions, documents: Path) -> ManifestOptions:
    """Return the options with the kinds of workloads of a policy set. Raises BadInputError."""
    workloads = policies_from(Compiler(), documents).workloads
    return replace(options, catalog=replace(options.catalog, workloads=workloads))


def print_manifests(options: ManifestOptions, stream: TextIO) -> None:
    """Write every object in the order in which it is to be applied."""
    stream.write(to_yaml(render(options)))
