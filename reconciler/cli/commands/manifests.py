# SPDX-License-Identifier: Apache-2.0
"""`sluice manifests`: what is applied to a cluster."""

import sys
from pathlib import Path
from typing import Any, Final

import click

from reconciler.cli.commands.monitoring_manifests import rendered_monitoring
from reconciler.cli.commands.telemetry_manifests import rendered_telemetry
from reconciler.cli.terminal import stop
from reconciler.manifests.options import DEFAULT_IMAGE
from reconciler.runtime.choices import Choice

_EXISTING: Final = click.Path(exists=True, path_type=Path)


@click.command()
@click.option(
    "--certificates",
    type=_EXISTING,
    help="Directory that `sluice certs` has made; without, the leader makes certificates, renews "
    "them and has them trusted.",
)
@click.option("--namespace", default="sluice", show_default=True)
@click.option("--name", default="sluice", show_default=True, help="Name of every object.")
@click.option("--image", default=DEFAULT_IMAGE, show_default=True)
@click.option("--replicas", default=2, show_default=True)
@click.option(
    "--processes",
    type=Choice(["together", "apart"]),
    default="together",
    show_default=True,
    help="Webhook and reconciler in one process, or each in its own, with the access it needs.",
)
@click.option("--reconcilers", type=int, help="Replicas of a reconciler that is apart [2].")
@click.option("--url", help="Where the API server reaches a webhook outside of the cluster.")
@click.option("--account", help="Sluice's user name, if it is not its service account.")
@click.option("--exclude", multiple=True, help="A further namespace to leave alone.")
@click.option("--only", multiple=True, help="Guard this namespace only; may be given repeatedly.")
@click.option("--observe", is_flag=True, help="For `mode: Observe`: never refuse, even when down.")
@click.option(
    "--no-admission-policies",
    is_flag=True,
    help="For clusters before 1.36, which serve no MutatingAdmissionPolicy v1.",
)
@click.option("--no-crds", is_flag=True, help="Leave out the kinds of documents.")
@click.option(
    "--no-documents",
    is_flag=True,
    help="Leave out the ConfigMap of documents, which holds yours once Sluice is installed.",
)
@click.option(
    "--settings",
    type=_EXISTING,
    help="Policy documents whose `Settings` name further kinds of workloads to be called for, and "
    "whose profiles name further resources.",
)
@click.option(
    "--scheduler",
    type=Choice(["default", "second"]),
    help="Render the scheduler extender too, and the configuration of the scheduler that asks it: "
    "the cluster's own, or a second one beside it.",
)
@click.option(
    "--extender-url",
    default="",
    help="Where the scheduler reaches the extender, if not by its Service: https://host:port.",
)
@click.option(
    "--extender-env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set the extender up, as by GPU_UTIL_THRESHOLD=0.9; may be given repeatedly.",
)
@click.option(
    "--scheduler-calls",
    type=Choice(["two", "one"]),
    help="How often the scheduler asks about a pod: two (filter and prioritize), or one (choose), "
    "which is faster, where no other extender comes after this one. By default one for a second "
    "scheduler, else two.",
)
@click.option("--scheduler-image", default="", help="Image of the second kube-scheduler.")
@rendered_telemetry
@rendered_monitoring
def manifests(
    certificates: Path | None,
    *,
    settings: Path | None,
    exclude: tuple[str, ...],
    only: tuple[str, ...],
    no_admission_policies: bool,
    no_crds: bool,
    **options: Any,
) -> None:
    """Render what is applied to a cluster: kinds, access, deployment, admission policies, webhooks.

    \b
    Examples:
      sluice manifests --image registry.example.com/sluice | kubectl apply --server-side -f -
      sluice manifests --certificates certificates > sluice.yaml
      sluice manifests --only team-a --observe | kubectl diff -f -
      sluice manifests --no-documents --settings policies/ > sluice.yaml
      sluice manifests --processes apart --replicas 3 > sluice.yaml
      sluice manifests --scheduler second --prometheus-url http://prometheus.monitoring:9090
      sluice manifests --exporters --telemetry-source scrape
      sluice manifests --monitoring --monitoring-label release=prometheus
    """
    from certs.errors import CertificateError
    from policies.vendors import build_catalog
    from reconciler.cli import manifests as command
    from reconciler.cli.inputs import BadInputError
    from reconciler.manifests.options import ManifestOptions

    placement = command.taken_placement(options, settings)
    exporters, monitoring = command.taken_exporters(options), command.taken_monitoring(options)
    try:
        rendered = ManifestOptions(
            catalog=build_catalog(),
            exclude_namespaces=exclude,
            only_namespaces=only,
            has_mutating_admission_policy=not no_admission_policies,
            has_crds=not no_crds,
            has_documents=not options.pop("no_documents"),
            **command.taken_replicas(options),
            telemetry=command.taken_telemetry(options),
            preferred_nodes=options.pop("preferred_nodes") or 0,
            **options,
        )
        command.check(rendered)
        if settings is not None:
            rendered = command.with_settings(rendered, settings)
        if certificates is not None:
            rendered = command.with_certificates(rendered, certificates)
        objects = command.objects(rendered, placement, exporters, monitoring)
    except (BadInputError, CertificateError, OSError) as error:
        stop(error)
    command.print_manifests(objects, sys.stdout)
