# SPDX-License-Identifier: Apache-2.0
"""The options of `sluice manifests` that are about monitoring."""

import click

from reconciler.cli.commands.options import Command, with_options

_OPTIONS = (
    click.option(
        "--monitoring",
        is_flag=True,
        help="Render rules and targets for the Prometheus operator, whose kinds must be there, and "
        "the dashboard for Grafana's sidecar.",
    ),
    click.option(
        "--monitoring-label",
        multiple=True,
        metavar="NAME=VALUE",
        help="A label by which the operator's Prometheus selects rules and targets, such as "
        "release=prometheus; may be given repeatedly.",
    ),
)


def rendered_monitoring(command: Command) -> Command:
    """Add them."""
    return with_options(command, _OPTIONS)
