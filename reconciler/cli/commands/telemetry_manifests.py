# SPDX-License-Identifier: Apache-2.0
"""The options of `sluice manifests` that are about telemetry, placement and exporters."""

import click

from reconciler.cli.commands.options import Command, with_options
from reconciler.placement.flags import leader_options

_OPTIONS = (
    click.option(
        "--prometheus-secret",
        default="",
        help="A Secret to mount at /etc/sluice/prometheus, for the files of token and CA.",
    ),
    click.option(
        "--exporter-secret",
        default="",
        help="A Secret to mount at /etc/sluice/exporters, for the files of CA and credentials.",
    ),
    click.option(
        "--exporter-audience",
        default="",
        help="Show exporters a token of Sluice's service account for this audience, as "
        "kube-rbac-proxy checks it, and grant the account to read /metrics.",
    ),
    click.option(
        "--telemetry-env",
        multiple=True,
        metavar="NAME=VALUE",
        help="A further variable of telemetry, for whoever reads it; may be given repeatedly.",
    ),
    click.option(
        "--exporters",
        is_flag=True,
        help="Render dcgm-exporter too: one for each class of nodes, measuring as often as the "
        "class is sampled. In --exporter-namespace, by default gpu-operator.",
    ),
    click.option(
        "--exporter-web-config",
        default="",
        help="A Secret in --exporter-namespace by which they serve TLS: web-config.yaml, and the "
        "files that it names.",
    ),
    click.option("--exporter-image", default="", help="Image of dcgm-exporter."),
    click.option(
        "--exporter-runtime-class",
        help="Its RuntimeClass [nvidia]; empty where nodes give GPUs by default.",
    ),
)


def rendered_telemetry(command: Command) -> Command:
    """Add them."""
    return with_options(leader_options(command), _OPTIONS)
