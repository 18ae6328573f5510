# SPDX-License-Identifier: Apache-2.0
"""`sluice extender`: the scheduler extender as a process of its own."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from policies.documents.kubernetes_names import is_dns_label, is_dns_subdomain
from policies.model.placement import Spreading
from policies.vendors import build_catalog
from reconciler.kube.access import find_access
from reconciler.kube.client import Client
from reconciler.kube.tls_secret import TlsSecret
from reconciler.placement import settings as names
from reconciler.runtime.choices import Choice
from reconciler.runtime.logs import LogFormat, configure
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.option_names import name_of
from reconciler.runtime.signals import StopEvents, stop_on_signals
from reconciler.runtime.starting import StartError
from reconciler.runtime.surroundings import Surroundings as ProcessSurroundings
from reconciler.runtime.tasks import Activity, supervise
from reconciler.telemetry import flags as telemetry_flags
from reconciler.telemetry.flags import telemetry_options
from reconciler.telemetry.starting import made
from webhook.commands import run_or_exit
from webhook.extender.documents import OwnDocuments
from webhook.extender.service import Candidacy, Extender, Surroundings
from webhook.extender.settings import ExtenderSettings, settings_from_environment
from webhook.server import Listen
from webhook.tls import ServerTls
from webhook.tls_sources import PemFiles, PemSecret

PORT: Final = 9444
"""Where it listens by default; plain HTTP without certificates."""

_STOP_SECONDS: Final = 0.5
"""Within a process that has said for long enough that it is stopping."""

FLAGS: Final = {
    **telemetry_flags.FLAGS,
    "threshold": names.THRESHOLD,
    "utilisation_weight": "GPU_UTIL_WEIGHT",
    "strategy": names.STRATEGY,
    "headroom_mib": names.HEADROOM,
}
"""Flags that say what an environment variable says too; the flag wins."""


def placement_options(command: Any) -> Any:
    """Add the options of the extender that every command that runs one has."""
    options = (
        click.option(
            "--threshold",
            help="Load from 0 to 1 from which a node gets no more pods [0.8]; also "
            f"${names.THRESHOLD}.",
        ),
        click.option(
            "--utilisation-weight",
            help="What utilisation counts for in the load, from 0 to 1 [0.7]; the rest is for "
            "used memory; also $GPU_UTIL_WEIGHT.",
        ),
        click.option(
            "--strategy",
            type=Choice([str(each) for each in Spreading], case_sensitive=False),
            help=f"Fill nodes up, or keep pods apart [Pack]; also ${names.STRATEGY}.",
        ),
        click.option(
            "--headroom-mib",
            help="MiB of each card's memory that stay free beyond what pods state [0]; also "
            f"${names.HEADROOM}.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_settings(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> ExtenderSettings:
    """Return the settings of flags and environment. Raises StartError."""
    given = {FLAGS[flag]: value for flag, value in flags.items() if value is not None}
    try:
        return settings_from_environment({**environ, **given})
    except ValueError as error:
        raise StartError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command, as its --help says."""

    kubeconfig: str
    certificates: Path | None
    listen: Listen
    candidacy: Candidacy
    flags: Mapping[str, str | None]
    policies: Path | None = None


@click.command()
@telemetry_options
@placement_options
@click.option(
    "--policies",
    type=click.Path(exists=True, path_type=Path),
    envvar="SLUICE_POLICIES",
    help="Directory of policy documents, or one file: nodes of a GPUPool are ranked as it says. "
    "Without, all nodes are ranked by --strategy.",
)
@click.option(
    "--kubeconfig",
    default="",
    help="By default $KUBECONFIG, then the pod's service account, then ~/.kube/config.",
)
@click.option(
    "--certificates",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="SLUICE_CERTIFICATES",
    help="Directory with tls.crt and tls.key; plain HTTP without.",
)
@click.option("--host", default=None, help="Address to listen on; all by default.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    envvar="SLUICE_EXTENDER_PORT",
)
@click.option(
    "--lease-namespace", default="sluice", show_default=True, callback=name_of(is_dns_label)
)
@click.option(
    "--lease-name",
    default="sluice-extender",
    show_default=True,
    callback=name_of(is_dns_subdomain, may_be_empty=True),
    help="The Lease by which one of all extenders is ready; empty for one that is alone.",
)
@click.option("--identity", default="", help="Who this is in the Lease.")
@click.option("--grace", type=click.FloatRange(0, 3600), default=5.0, show_default=True)
@click.option("--log-format", type=Choice(["text", "json"]), default="text")
@click.option(
    "--log-level",
    type=Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
)
def extender(
    kubeconfig: str,
    certificates: Path | None,
    log_format: str,
    log_level: str,
    **options: Any,
) -> None:
    """Run the scheduler extender: which nodes may get a GPU pod, and which is best.

    kube-scheduler is told of it by `sluice manifests --scheduler`.

    \b
    Examples:
      sluice extender --kubeconfig ~/.kube/config --prometheus-url http://prometheus:9090
      sluice extender --certificates /etc/sluice/certificates --threshold 0.9
      sluice extender --policies policies/ --prometheus-url http://prometheus:9090
    """  # noqa: D301 - \b keeps the examples' lines apart in --help
    configure(LogFormat(log_format), log_level)
    listen = Listen(host=options["host"], port=options["port"], grace=options["grace"])
    candidacy = Candidacy(options["lease_namespace"], options["lease_name"], options["identity"])
    flags = {flag: options[flag] for flag in FLAGS}
    policies = options["policies"]
    run_or_exit(_run(Options(kubeconfig, certificates, listen, candidacy, flags, policies)))


async def _run(options: Options) -> None:
    settings = read_settings(options.flags, os.environ)
    access = find_access(os.environ, kubeconfig=options.kubeconfig)
    metrics = Metrics()
    tls = _tls(options.certificates, metrics) if options.certificates is not None else None
    async with Client(access) as client:
        around = Surroundings(
            access,
            client,
            build_catalog(),
            metrics,
            tls,
            options.listen,
            made(settings.telemetry, client, metrics),
        )
        own = None
        if options.policies is not None:
            own = OwnDocuments(options.policies, client, metrics)
            await own.watcher.refresh()
            around = replace(around, documents=own.watcher, more_documents=own.api)
        found = Extender(around, settings.placement, options.candidacy)
        with stop_on_signals() as events:
            followed = own.activities() if own is not None else {}
            await supervise({**followed, **found.activities(events)})


def _tls(directory: Path, metrics: Metrics) -> ServerTls:
    return ServerTls(PemFiles(directory / "tls.crt", directory / "tls.key"), metrics)


@dataclass(frozen=True, slots=True)
class BesideWebhook:
    """The extender within `sluice run`: at a port of its own, with the webhook's certificates."""

    port: int
    host: str | None
    certificates: Path
    candidacy: Candidacy

    def __call__(self, around: ProcessSurroundings) -> Mapping[str, Activity]:
        """Return the activities. Raises StartError, TlsError."""
        kept, watches = around.certificates, dict[str, Activity]()
        if kept is None:
            tls = _tls(self.certificates, around.metrics)
        else:
            secret = TlsSecret(around.client, kept.namespace, kept.secret)
            tls = ServerTls(PemSecret(secret), around.metrics)
            watches["extender's Secret"] = secret.run()
        own = Surroundings(
            around.access,
            around.client,
            around.catalog,
            around.metrics,
            tls,
            Listen(host=self.host, port=self.port, grace=_STOP_SECONDS),
            around.telemetry,
            around.documents,
        )
        # The process stops as a whole: its other activities hear the signals.
        return {
            **watches,
            **Extender(own, around.placement, self.candidacy).activities(StopEvents()),
        }
