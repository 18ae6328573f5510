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

from reconciler.cli.commands import options as shared
from reconciler.cli.terminal import CommandError, fail, plain_console
from reconciler.runtime.choices import Choice

if TYPE_CHECKING:
    from reconciler.cli.card_map import CardMap
    from reconciler.cli.fleet import Fleet
    from reconciler.cli.loads import Loads

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


@click.command()
@shared.KUBECONFIG
@_FILE
@_SELECTOR
@shared.LOADS
@click.option(
    "-o", "--output", type=Choice(["text", "wide", "json"]), default="text", show_default=True
)
@click.option(
    "--sort",
    type=Choice(["name", "free", "fragmented", "load"]),
    default="name",
    show_default=True,
    help="By name, or the most first, in GPUs.",
)
@click.option("-w", "--watch", is_flag=True, help="Follow the cluster until Ctrl-C.")
def nodes(  # noqa: PLR0913 - an option each
    kubeconfig: str,
    filename: Path | None,
    selector: str,
    prometheus: str,
    output: str,
    sort: str,
    *,
    watch: bool,
) -> None:
    """Show the GPUs of nodes: how they are shared, what is given out, and what they do.

    USED and FREE count what device plugins hand out; those of models are GPUs. FRAGMENTED is what
    of the free GPUs a typical pod of this cluster could not use. `?` is unknown, and AGE how old
    the oldest measured value is. Loads are from Prometheus, or else from the nodes' annotations,
    which tell of memory alone. Exits with 2 if nodes cannot be read.

    \b
    Examples:
      sluice nodes
      sluice nodes --watch --sort load --prometheus http://prometheus:9090
      sluice nodes -l nvidia.com/gpu.product=NVIDIA-L40S -o json | jq '.nodes[] | .name'
      kubectl get nodes,pods -A -o json | sluice nodes -f -
    """
    from reconciler.cli.nodes import Order, nodes_report, nodes_tables, print_nodes_json

    source = Source(kubeconfig, filename, selector, prometheus)
    try:
        if watch:
            follow(source, output, sort)
            return
        found, loads = read(source)
    except CommandError as error:
        fail(error)
    report = nodes_report(found, loads, time.time(), Order(sort))
    if output == "json":
        print_nodes_json(report, sys.stdout)
    else:
        plain_console().print(nodes_tables(report, wide=output == "wide"))


@click.command("map")
@shared.KUBECONFIG
@_FILE
@_SELECTOR
@shared.LOADS
@click.option(
    "--svg",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the map into a file, `-` being standard output.",
)
@click.option("-o", "--output", type=Choice(["text", "json"]), default="text", show_default=True)
def card_map(
    kubeconfig: str,
    filename: Path | None,
    selector: str,
    prometheus: str,
    svg: Path | None,
    output: str,
) -> None:
    """Draw who has which cards: nodes by model, cards by tenant.

    A letter for each tenant, `.` for what is free, a blank for what is not cut into MIG instances.
    Which card a pod has is assumed, since Kubernetes does not know: where the device plugin's
    habit puts it; with --prometheus, where its exporter shows it. Exits with 2 if nodes cannot be
    read or the file cannot be written.

    \b
    Examples:
      sluice map
      sluice map --svg gpus.svg
      kubectl get nodes,pods -A -o json | sluice map -f - --svg -
    """
    from reconciler.cli import card_map as command
    from reconciler.cli.map_text import print_map

    try:
        source = Source(kubeconfig, filename, selector, prometheus)
        found = command.card_map(read(source)[0])
        if svg is not None:
            write_svg(found, svg)
    except CommandError as error:
        fail(error)
    if output == "json":
        command.print_map_json(found, sys.stdout)
    elif svg is None:
        print_map(found, plain_console())


@dataclass(frozen=True, slots=True)
class Source:
    """Where nodes, pods and loads are read, as options say it."""

    kubeconfig: str
    filename: Path | None
    selector: str
    prometheus: str


def read_fleet(source: Source) -> "Fleet":
    """Read nodes and pods once. Raises CommandError."""
    from reconciler.cli import fleet
    from reconciler.cli.loads import placement_settings
    from reconciler.cli.reading import with_cluster

    model = placement_settings(os.environ).model
    if source.filename is None:
        look = partial(fleet.read_fleet, selector=source.selector, settings=model)
        return with_cluster(source.kubeconfig, look)
    if source.selector:
        raise CommandError("--selector is for a cluster; let kubectl select what the file holds")
    return fleet.file_fleet(source.filename, model)


def read(source: Source) -> tuple["Fleet", "Loads"]:
    """Read nodes, pods and loads once, and say what is missing. Raises CommandError."""
    from reconciler.cli.fleet import measure
    from reconciler.cli.loads import read_loads, telemetry_config

    config = telemetry_config(os.environ, source.prometheus)
    found = read_fleet(source)
    loads = asyncio.run(read_loads(config, found.nodes))
    measure(found, loads)
    for complaint in loads.complaints:
        click.echo(f"warning: {complaint}", err=True)
    return found, loads


def write_svg(found: "CardMap", path: Path) -> None:
    """Draw a map into a file. Raises CommandError."""
    from reconciler.cli.map_svg import map_svg

    drawn = map_svg(found)
    if str(path) == "-":
        sys.stdout.buffer.write(drawn)
        return
    try:
        path.write_bytes(drawn)
    except OSError as error:
        raise CommandError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    click.echo(f"wrote {path}", err=True)


def follow(source: Source, output: str, sort: str) -> None:
    """Show nodes until Ctrl-C. Raises CommandError."""
    from rich.console import Console

    from reconciler.cli import nodes_live as live
    from reconciler.cli.loads import placement_settings, telemetry_config
    from reconciler.cli.nodes import Order
    from reconciler.cli.reading import with_cluster

    if source.filename is not None:
        raise CommandError("--watch follows a cluster; a file does not change")
    following = live.Following(
        source.selector,
        telemetry_config(os.environ, source.prometheus),
        placement_settings(os.environ),
        Order(sort),
    )
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
