# SPDX-License-Identifier: Apache-2.0
"""`sluice release`: break-glass."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from policies.documents.kubernetes_names import is_dns_label
from reconciler.cli.commands.options import KUBECONFIG, lease
from reconciler.cli.terminal import BAD_INPUT, CommandError, fail
from reconciler.runtime.option_names import name_of

if TYPE_CHECKING:
    from reconciler.cli.release.run import Orders, Tally
    from reconciler.kube.transport import ClientSettings

LEFT: Final = 1
_LEADER: Final = "these pods count, and what is borrowed may be taken back"


@click.command()
@click.option("--all", "everything", is_flag=True, help="Every pod that has the gate; required.")
@click.option(
    "-n",
    "--namespace",
    default="",
    callback=name_of(is_dns_label, may_be_empty=True),
    help="Only those of this namespace.",
)
@click.option("--dry-run", is_flag=True, help="Ask the API server whether it would be let.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before.")
@click.option("--reason", default="", help="Why, for the audit log and the pods.")
@click.option(
    "--as", "username", default="", help="Act as this user, not as yourself: who may patch pods."
)
@click.option(
    "--audit",
    default="sluice-release.jsonl",
    show_default=True,
    help="File to which a line for each pod is added; `-` is standard output.",
)
@KUBECONFIG
@lease
def release(everything: bool, yes: bool, kubeconfig: str, audit: str, **options: Any) -> None:
    """Take Sluice's gate off pods, whatever their quota: break-glass; uninstalling begins with it.

    It works whether Sluice runs or not, for who may impersonate the group sluice.dev:break-glass:
    the API server then asks no webhook of Sluice. Each pod is changed only as it was seen; gates of
    others stay. No charge is written: what runs on is counted by what it asks for, as pods that are
    older than Sluice are, and a leader that runs on may take back what is borrowed.

    Exits with 0 if no pod has the gate any more, 1 if any has, 2 if it cannot be done at all.

    \b
    Examples:
      sluice release --all --dry-run
      sluice release --all --reason "quota service down, INC-1234"
      sluice release --all --namespace chat --yes
    """
    if not everything:
        click.echo("error: say --all, and --namespace for those of one namespace", err=True)
        sys.exit(BAD_INPUT)
    try:
        orders, settings = _survey(kubeconfig, yes=yes, **options)
        tally = _act(kubeconfig, orders, settings, audit)
    except CommandError as error:
        fail(error)
    sys.exit(LEFT if tally.left or tally.unseen else 0)


def _survey(kubeconfig: str, *, yes: bool, **options: Any) -> "tuple[Orders, ClientSettings]":
    """Find out who asks and what there is to do, and have it confirmed. Raises CommandError."""
    from reconciler.cli.reading import with_cluster
    from reconciler.cli.release.acting import break_glass, check_acting, who_am_i
    from reconciler.cli.release.pods import Force
    from reconciler.cli.release.printing import announcement
    from reconciler.cli.release.run import Orders, gated_pods, leader
    from reconciler.kube.resources import LEASES, Target

    namespace, dry_run = options["namespace"], options["dry_run"]
    me = with_cluster(kubeconfig, who_am_i)
    settings = break_glass(me, options["username"])
    acting = with_cluster(kubeconfig, check_acting, settings)
    held = Target(LEASES, options["lease_name"], options["lease_namespace"])
    pods = with_cluster(kubeconfig, partial(gated_pods, namespace=namespace), settings)
    if not pods:
        where = f" in namespace {namespace}" if namespace else ""
        click.echo(f"no pod{where} has Sluice's gate", err=True)
        sys.exit(0)
    click.echo(announcement(pods, dry_run=dry_run), err=True)
    if holder := with_cluster(kubeconfig, partial(leader, lease=held)):
        click.echo(f"note: {holder} holds the Lease, and while it leads {_LEADER}", err=True)
    if not (yes or dry_run):
        _confirm()
    return Orders(namespace, Force(me.user, options["reason"]), acting.user, dry_run), settings


def _confirm() -> None:
    """Ask. Raises CommandError unless the answer is yes."""
    try:
        if click.confirm("Go on?", err=True):
            return
    except click.Abort as error:
        message = "nothing was done: where nobody can be asked, say --yes"
        raise CommandError(message) from error
    raise CommandError("nothing was done")


def _act(kubeconfig: str, orders: "Orders", settings: "ClientSettings", path: str) -> "Tally":
    """Do it, and say what came of it. Raises CommandError."""
    from rich.console import Console

    from reconciler.cli.reading import with_cluster
    from reconciler.cli.release.audit import opened
    from reconciler.cli.release.printing import conclusion, failures, progress
    from reconciler.cli.release.run import release_all
    from reconciler.kube.reflector import Runtime

    with opened(path) as audit, progress(Console(stderr=True)) as shown:
        tally = with_cluster(
            kubeconfig,
            lambda client: release_all(client, orders, audit, shown, Runtime()),
            settings,
        )
    for line in failures(tally.left):
        click.echo(line, err=True)
    click.echo(conclusion(tally, dry_run=orders.dry_run), err=path == "-")
    if not audit.is_whole:
        raise CommandError(f"the audit log {path} is not whole")
    return tally
