# SPDX-License-Identifier: Apache-2.0
"""The control plane from the shell: build its programs, or run it until Ctrl-C."""

import os
import signal
import time
from pathlib import Path

import click

from tests.controlplane import ControlPlane, ControlPlaneError, find_binaries, nodes
from tests.controlplane.programs import KITS

_CHECK_SECONDS = 1.0


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Build or run a real Kubernetes control plane with simulated GPU nodes."""


@main.command()
def build() -> None:
    """Build what is neither in KUBEBUILDER_ASSETS nor in the cache, and print where all is."""
    try:
        found = [path for kit in KITS for path in find_binaries(os.environ, _report, kit).values()]
    except ControlPlaneError as error:
        raise click.ClickException(str(error)) from error
    for path in found:
        click.echo(path)


@main.command()
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep state, logs and kubeconfigs here; by default in a temporary directory.",
)
def start(directory: Path | None) -> None:
    """Run until Ctrl-C, with one simulated node of every kind."""
    # A shell's background job starts with SIGINT ignored, and Python would leave it so.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with ControlPlane(find_binaries(os.environ, _report), directory=directory) as control_plane:
            control_plane.create_nodes(nodes.fleet())
            click.echo(f"export KUBECONFIG={control_plane.kubeconfig}")
            click.echo(f"logs are in {control_plane.directory}; Ctrl-C ends it", err=True)
            _watch(control_plane)
    except ControlPlaneError as error:
        raise click.ClickException(str(error)) from error


def _watch(control_plane: ControlPlane) -> None:
    """Return at a keyboard interrupt; raise when a component dies."""
    try:
        while True:
            control_plane.components.check()
            time.sleep(_CHECK_SECONDS)
    except KeyboardInterrupt:
        return


def _report(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main(prog_name="python -m tests.controlplane")
