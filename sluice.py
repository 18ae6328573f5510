# SPDX-License-Identifier: Apache-2.0
"""The one command. Each subcommand imports its part only when it runs."""

from pathlib import Path
from typing import Any

import click

from reconciler.cli.commands.groups import LateGroup
from reconciler.cli.commands.options import (
    KUBECONFIG,
    POLICIES,
    Command,
    election,
    kept_certificates,
    lease,
    records,
    taken_certificates,
    with_options,
)
from reconciler.placement.flags import leader_options

__version__ = "0.1.0"

EXISTING = click.Path(exists=True, path_type=Path)
PORT = click.IntRange(0, 65535)
MOST_SECONDS = 3600.0


@click.group(
    cls=LateGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="sluice")
def main() -> None:
    """Policy-as-code GPU tenancy for Kubernetes."""


def _seconds(_: click.Context, __: click.Parameter, value: float) -> float:
    if 0 <= value <= MOST_SECONDS:  # no number (NaN) is in no range
        return value
    raise click.BadParameter(f"{value} is no number of seconds from 0 to {MOST_SECONDS:.0f}")


def _serving(command: Command) -> Command:
    """Add the options that every command with a server has."""
    options = (
        POLICIES,
        click.option(
            "--certificates",
            type=click.Path(path_type=Path),
            default="certificates",
            show_default=True,
            envvar="SLUICE_CERTIFICATES",
            help="Directory with tls.crt and tls.key; followed when they change.",
        ),
        kept_certificates,
        click.option("--host", default=None, help="Address to listen on; all by default."),
        click.option("--port", type=PORT, default=9443, show_default=True, envvar="SLUICE_PORT"),
        click.option(
            "--grace",
            default=5.0,
            show_default=True,
            callback=_seconds,
            help="Seconds to go on answering after the signal to stop.",
        ),
    )
    return with_options(records(command), options)


@main.command()
@_serving
@click.option(
    "--facts",
    type=EXISTING,
    help="Facts from a file, for use without a cluster; by default they are watched.",
)
@KUBECONFIG
@lease
def serve(facts: Path | None, kubeconfig: str, **options: Any) -> None:
    """Run the admission webhook; the controllers are `sluice reconcile`.

    \b
    Examples:
      sluice certs --dir certificates --name localhost --name 127.0.0.1
      sluice serve --policies policies/ --facts facts.yaml --audit audit.jsonl
      sluice serve --policies /etc/sluice/policies --certificates /etc/sluice/tls
    """
    from webhook.commands import Serve, start

    kept = taken_certificates(options)
    start(Serve(facts=facts, kubeconfig=kubeconfig, kept=kept, **options))


@main.command()
@_serving
@KUBECONFIG
@election
@click.option(
    "--extender-port",
    type=PORT,
    envvar="SLUICE_EXTENDER_PORT",
    help="Be a scheduler extender at this port as well; set up by the environment.",
)
@leader_options
def run(
    kubeconfig: str,
    lease_namespace: str,
    lease_name: str,
    identity: str,
    *,
    extender_port: int | None,
    **options: Any,
) -> None:
    """Run webhook and controllers in one process; of several replicas one leads.

    \b
    Examples:
      sluice run --policies policies/ --kubeconfig ~/.kube/config
      sluice run --policies policies/ --certificates-secret sluice/sluice-tls
      sluice run --policies policies/ --extender-port 9444 --prometheus-url http://prometheus:9090
    """
    from reconciler.manager import Election, run_as_candidate
    from reconciler.placement.flags import FLAGS
    from reconciler.telemetry.flags import taken
    from webhook.commands import Serve, beside, start

    activities = run_as_candidate(Election(lease_namespace, lease_name, identity))
    if extender_port is not None:
        from webhook.extender.command import BesideWebhook
        from webhook.extender.service import Candidacy

        candidacy = Candidacy(lease_namespace, f"{lease_name}-extender", identity)
        where = (extender_port, options["host"], options["certificates"])
        activities = beside(activities, BesideWebhook(*where, candidacy))
    options |= {"lease_namespace": lease_namespace, "lease_name": lease_name}
    taken_apart: dict[str, Any] = {
        "flags": taken(options, FLAGS),
        "kept": taken_certificates(options),
    }
    start(Serve(facts=None, kubeconfig=kubeconfig, **taken_apart, **options), activities)


@main.command()
@click.option("--policies", type=EXISTING, default="docs/examples/policies", show_default=True)
@click.option("--pods", type=EXISTING, default="docs/examples/pods", show_default=True)
@click.option("--facts", type=EXISTING, default="docs/examples/facts.yaml", show_default=True)
@click.option("--dir", "directory", type=click.Path(path_type=Path), default="run")
@click.option("--port", type=PORT, default=9443, show_default=True)
def demo(policies: Path, pods: Path, facts: Path, directory: Path, port: int) -> None:
    """Serve the example policies on this machine and show what they make of the example pods.

    \b
    Examples:
      sluice demo
      sluice demo --policies policies/ --pods pods/ --facts facts.yaml
    """
    from webhook.demo import Demo, run_demo

    run_demo(Demo(policies, pods, facts, directory, port))


if __name__ == "__main__":
    main()
