# SPDX-License-Identifier: Apache-2.0
"""The commands that show how quota stands: tenants, explain, usage."""

import os
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click

from reconciler.cli.commands import options as shared
from reconciler.cli.terminal import CommandError, fail, span
from reconciler.runtime.choices import Choice

_OUTPUT = click.option(
    "-o", "--output", type=Choice(["text", "json"]), default="text", show_default=True
)


@click.command()
@shared.KUBECONFIG
@click.option(
    "-o", "--output", type=Choice(["text", "wide", "json"]), default="text", show_default=True
)
def tenants(kubeconfig: str, output: str) -> None:
    """Show what tenants are guaranteed, use, borrow and wait for.

    From the status that the leader writes: `-` is no limit, `?` what none has said yet. Exits with
    2 if the cluster cannot be asked.

    \b
    Examples:
      sluice tenants
      sluice tenants -o wide
      sluice tenants -o json | jq '.[] | select(.status.pending > 0) | .name'
    """
    from rich.console import Console

    from reconciler.cli import tenants as command
    from reconciler.cli.reading import with_cluster

    try:
        found = with_cluster(kubeconfig, command.read_tenants)
    except CommandError as error:
        fail(error)
    if output == "json":
        command.print_tenants_json(found, sys.stdout)
    else:
        command.print_tenants(found, Console(soft_wrap=True), wide=output == "wide")


@click.group()
def explain() -> None:
    """Say why something is as it is."""


@explain.command()
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option(
    "--policies",
    type=click.Path(exists=True, path_type=Path),
    envvar="SLUICE_POLICIES",
    help="Directory of policy documents; by default those that the cluster has.",
)
@shared.KUBECONFIG
@shared.LOADS
@_OUTPUT
def pod(
    name: str,
    namespace: str,
    policies: Path | None,
    kubeconfig: str,
    prometheus: str,
    output: str,
) -> None:
    """Say what was decided for a pod, its place in the queue, what holds it, and what ends that.

    And of every node why it is out, or what it lost by: as the scheduler extender would have it
    now, by the settings of this environment, if the pod were not there. Without --prometheus loads
    are unknown and make no difference. Everything is read anew from the cluster. Exits with 2 if
    there is no such pod, or the cluster cannot be asked.

    \b
    Examples:
      sluice explain pod research/ft-70b-3
      sluice explain pod ft-70b-3 -n research --policies policies/ -o json
    """
    from rich.console import Console

    from reconciler.cli.explain import print_report, print_report_json
    from reconciler.cli.explaining import report
    from reconciler.cli.loads import placement_settings, telemetry_config
    from reconciler.cli.reading import with_cluster
    from reconciler.cli.snapshot import Placing, read_scene

    before, slash, after = name.partition("/")
    where, which = (before, after) if slash else (namespace, name)
    try:
        if not (where and which):
            raise CommandError(f"{name!r} names no pod: write NAME or NAMESPACE/NAME")  # noqa: TRY301 - told like the others
        placing = Placing(placement_settings(os.environ), telemetry_config(os.environ, prometheus))
        read = partial(read_scene, namespace=where, name=which, policies=policies, placing=placing)
        scene = with_cluster(kubeconfig, read)
    except CommandError as error:
        fail(error)
    for complaint in scene.among.complaints if scene.among is not None else ():
        click.echo(f"warning: {complaint}", err=True)
    found = report(scene)
    if output == "json":
        print_report_json(found, sys.stdout)
    else:
        print_report(found, Console(soft_wrap=True))


@click.command()
@click.option(
    "--since", default="7d", show_default=True, callback=span, help="Such as 7d, 36h or 1h30m."
)
@click.option(
    "--audit",
    "files",
    multiple=True,
    envvar="SLUICE_AUDIT",
    help="An audit log, with what it was rotated to; `-` is standard input. May be repeated.",
)
@_OUTPUT
def usage(since: int, files: tuple[str, ...], output: str) -> None:
    """Sum up GPU-hours by tenant, pool and sharing mode, from the audit log.

    Each leader writes into the log of its own process, so all of them are to be named. Exits with 2
    if a log cannot be read.

    \b
    Examples:
      sluice usage --audit /var/log/sluice/audit.jsonl
      sluice usage --since 30d --audit a/audit.jsonl --audit b/audit.jsonl -o json
      kubectl logs -n sluice deployment/sluice | sluice usage --since 24h --audit -
    """
    from rich.console import Console

    from reconciler.cli import usage as command

    now = datetime.now(UTC)
    try:
        if not files:
            raise CommandError("name the audit log with --audit or $SLUICE_AUDIT")  # noqa: TRY301 - told like the others
        begin = now - min(timedelta(seconds=since), now - datetime.fromtimestamp(0, UTC))
        found = command.read_usage(command.files_of(files), begin, now)
    except CommandError as error:
        fail(error)
    for complaint in command.complaints(found):
        click.echo(complaint, err=True)
    if output == "json":
        command.print_usage_json(found, sys.stdout)
    else:
        command.print_usage(found, Console(soft_wrap=True))
