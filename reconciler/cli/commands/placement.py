# SPDX-License-Identifier: Apache-2.0
"""The commands that show where GPUs are and who has them: nodes, map."""

import asyncio
import os
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import CommandError, fail, plain_console

if TYPE_CHECKING:
    from reconciler.cli.fleet import Fleet
    from reconciler.cli.loads import Loads
    from reconciler.kube.client import Client

_KUBECONFIG = click.option(
    "--kubeconfig",
    default="",
    help="By default $KUBECONFIG, then the pod's service account, then ~/.kube/config.",
)
_FILE = click.option(
    "-f",
    "--filename",
    type=click.Path(path_type=Path),
    help="Read what `kubectl get nodes,pods -A -o json` has written, and no cluster; `-` is "
    "standard input.",
)
_SELECTOR = click.option(
    "-l", "--selector", default="", help="Only nodes with these labels, as kubectl takes it."
)
PROMETHEUS = click.option(
    "--prometheus",
    "--prometheus-url",
    "prometheus",
    default="",
    metavar="URL",
    help="Where loads are read; also $PROMETHEUS_URL. By default from the nodes' annotations, "
    "which tell of memory alone.",
)


@click.command()
@_KUBECONFIG
@_FILE
@_SELECTOR
@PROMETHEUS
@click.option(
    "-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", show_default=True
)
@click.option("-w", "--watch", is_flag=True, help="Follow the cluster until Ctrl-C.")
def nodes(
    kubeconfig: str,
    filename: Path | None,
    selector: str,
    prometheus: str,
    output: str,
    *,
    watch: bool,
) -> None:
    """Show the GPUs of nodes: how they are shared, what is given out, and what they do.

    USED and FREE count what device plugins hand out; those of models are GPUs. FRAGMENTED is what
    of the free GPUs a typical pod of this cluster could not use. `?` is unknown, and AGE how old
    the oldest measured value is. Exits with 2 if nodes cannot be read.

    \b
    Examples:
      sluice nodes
      sluice nodes --watch --prometheus http://prometheus:9090
      sluice nodes -l nvidia.com/gpu.product=NVIDIA-L40S -o json | jq '.nodes[] | .name'
      kubectl get nodes,pods -A -o json | sluice nodes -f -
    """
    from reconciler.cli.nodes import nodes_report, nodes_tables, print_nodes_json

    source = Source(kubeconfig, filename, selector, prometheus)
    try:
        if watch:
            follow(source, output)
            return
        found, loads = read(source)
    except CommandError as error:
        fail(error)
    report = nodes_report(found, loads, time.time())
    if output == "json":
        print_nodes_json(report, sys.stdout)
    else:
        plain_console().print(nodes_tables(report, wide=output == "wide"))


@dataclass(frozen=True, slots=True)
class Source:
    """Where nodes, pods and loads are read, as options say it."""

    kubeconfig: str
    filename: Path | None
    selector: str
    prometheus: str


def read(source: Source) -> tuple["Fleet", "Loads"]:
    """Read nodes, pods and loads once, and say what is missing. Raises CommandError."""
    from reconciler.cli import fleet, loads
    from reconciler.cli.reading import with_cluster

    config = loads.telemetry_config(os.environ, source.prometheus)

    async def look(client: "Client") -> tuple["Fleet", "Loads"]:
        found = await fleet.read_fleet(client, source.selector)
        return found, await loads.read_loads(config, found.nodes)

    if source.filename is None:
        found, load = with_cluster(source.kubeconfig, look)
    elif source.selector:
        raise CommandError("--selector is for a cluster; let kubectl select what the file holds")
    else:
        found = fleet.file_fleet(source.filename)
        load = asyncio.run(loads.read_loads(config, found.nodes))
    for complaint in load.complaints:
        click.echo(f"warning: {complaint}", err=True)
    return found, load


def follow(source: Source, output: str) -> None:
    """Show nodes until Ctrl-C. Raises CommandError."""
    from rich.console import Console

    from reconciler.cli import nodes_live as live
    from reconciler.cli.loads import telemetry_config
    from reconciler.cli.reading import with_cluster

    if source.filename is not None:
        raise CommandError("--watch follows a cluster; a file does not change")
    following = live.Following(source.selector, telemetry_config(os.environ, source.prometheus))
    console, wide = Console(), output == "wide"
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        screen: live.Screen
        if output == "json":
            screen = live.Lines(sys.stdout)
        elif console.is_terminal:
            screen = live.LiveScreen(console, wide=wide)
            stack.enter_context(screen.live)
        else:
            screen = live.Pages(plain_console().print, wide=wide)
        with_cluster(
            source.kubeconfig, partial(live.follow_nodes, following=following, screen=screen)
        )
