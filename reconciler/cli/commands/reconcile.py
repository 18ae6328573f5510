# SPDX-License-Identifier: Apache-2.0
"""`sluice reconcile`: the reconciler as a process of its own."""

from pathlib import Path
from typing import Any, Final

import click

from reconciler.cli.commands import options as shared
from reconciler.placement.flags import FLAGS, leader_options
from reconciler.telemetry.flags import taken

PORT: Final = 9445
"""Where it listens by default, beside webhook (9443) and extender (9444)."""


@click.command()
@shared.POLICIES
@shared.KUBECONFIG
@shared.election
@click.option("--host", default=None, help="Address to listen on; all by default.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    envvar="SLUICE_RECONCILER_PORT",
    help="Plain HTTP: /metrics, /readyz, /healthz.",
)
@shared.kept_certificates
@leader_options
@shared.records
def reconcile(policies: Path, kubeconfig: str, audit: str, **options: Any) -> None:
    """Run the controllers: release pods, reclaim, write statuses. Of all such processes one leads.

    The webhook is `sluice serve`, a process of its own; `sluice run` is both in one. A standby is
    ready once it has the documents and reaches the API server; who leads is the metric
    sluice_leader. A leader that is stopped gives the Lease back, so that another goes on at once.

    \b
    Examples:
      sluice reconcile --policies policies/ --kubeconfig ~/.kube/config
      sluice reconcile --policies /etc/sluice/policies --identity "$POD_NAME"
      sluice reconcile --policies policies/ --prometheus-url http://prometheus:9090
    """
    from reconciler.manager import Election
    from reconciler.runtime.listener import Address
    from reconciler.runtime.logs import LogFormat, configure
    from reconciler.runtime.starting import run_or_exit
    from reconciler.service import Options, run_reconciler

    configure(LogFormat(options["log_format"]), options["log_level"])
    election = Election(options["lease_namespace"], options["lease_name"], options["identity"])
    address = Address(options["host"], options["port"])
    found = Options(
        *(policies, kubeconfig, audit, election, address),
        flags=taken(options, FLAGS),
        certificates=shared.taken_certificates(options),
    )
    run_or_exit(run_reconciler(found))
