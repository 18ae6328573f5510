# SPDX-License-Identifier: Apache-2.0
"""`sluice manifests`: an installation as YAML, from the options of the command line."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TextIO

from certs.files import CertificateFiles, read_ca_bundle
from policies.documents.problems import Problem, Severity
from reconciler.cli.inputs import BadInputError, policies_from
from reconciler.manifests.exporters import (
    EXPORTER_IMAGE,
    EXPORTER_NAMESPACE,
    RUNTIME_CLASS,
    ExporterOptions,
    exporter_objects,
)
from reconciler.manifests.monitoring import MonitoringOptions, monitoring_objects
from reconciler.manifests.options import ManifestOptions, Processes, TlsSecret, is_webhook_url
from reconciler.manifests.render import render
from reconciler.manifests.scheduler import Asker, SchedulerOptions, scheduler_objects
from reconciler.manifests.scheduler_config import Calls
from reconciler.manifests.second_scheduler import SCHEDULER_IMAGE
from reconciler.manifests.telemetry import TelemetryOptions, environment_problems
from reconciler.manifests.text import to_yaml
from reconciler.runtime.loading import Compiler
from reconciler.telemetry.flags import FLAGS, taken

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def check(options: ManifestOptions) -> None:
    """Raise BadInputError for options that the API server or the processes would refuse."""
    _refuse(options.problems())


def with_certificates(options: ManifestOptions, directory: Path) -> ManifestOptions:
    """Return the options with the CA bundle and the Secret of a directory of certificates.

    A webhook outside the cluster (`url`) keeps its own files, so no Secret is made for it.
    Raises CertificateError, OSError.
    """
    files = CertificateFiles.in_directory(directory)
    bundle = read_ca_bundle(files.ca_certificate)
    if options.url is not None:
        return replace(options, ca_bundle=bundle)
    secret = TlsSecret(bundle, files.certificate.read_bytes(), files.key.read_bytes())
    return replace(options, ca_bundle=bundle, tls=secret)


def with_settings(options: ManifestOptions, documents: Path) -> ManifestOptions:
    """Return the options with the kinds of workloads of a policy set. Raises BadInputError."""
    workloads = policies_from(Compiler(), documents).workloads
    return replace(options, catalog=replace(options.catalog, workloads=workloads))


@dataclass(frozen=True, slots=True)
class Placement:
    """The options of the scheduler extender; without `asker` there is none."""

    asker: str | None = None
    url: str = ""
    environment: tuple[str, ...] = ()
    image: str = ""
    documents: Path | None = None
    calls: str | None = None


@dataclass(frozen=True, slots=True)
class Exporters:
    """The options of the exporters; there are none unless they are wanted."""

    is_wanted: bool = False
    image: str = ""
    runtime_class: str | None = None
    web_config: str = ""


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The options of monitoring; there is none unless it is wanted. `labels` as NAME=VALUE."""

    is_wanted: bool = False
    labels: tuple[str, ...] = ()


def objects(
    options: ManifestOptions,
    placement: Placement,
    exporters: Exporters,
    monitoring: Monitoring,
) -> list[dict[str, object]]:
    """Return every object in the order in which it is to be applied. Raises BadInputError."""
    _refuse(_idle(placement, exporters, monitoring))
    found = render(options)
    further = _further_resources(placement.documents)
    if exporters.is_wanted:
        found += exporter_objects(_exporters(options, exporters, further))
    if placement.asker is not None:
        found += scheduler_objects(_scheduler(options, placement, further))
    if monitoring.is_wanted:
        found += monitoring_objects(_monitoring(options, exporters, monitoring))
    return found


def print_manifests(rendered: Iterable[Mapping[str, object]], stream: TextIO) -> None:
    """Write the objects as YAML."""
    stream.write(to_yaml(rendered))


def _idle(placement: Placement, exporters: Exporters, monitoring: Monitoring) -> Iterator[str]:
    """Yield what is wrong with options that are about something which is not rendered."""
    asked, second = placement.asker is not None, placement.asker == Asker.SECOND
    about: tuple[tuple[str, bool, str, bool], ...] = (
        ("--extender-url", bool(placement.url), "--scheduler", asked),
        ("--extender-env", bool(placement.environment), "--scheduler", asked),
        ("--scheduler-calls", placement.calls is not None, "--scheduler", asked),
        ("--scheduler-image", bool(placement.image), "--scheduler second", second),
        ("--exporter-image", bool(exporters.image), "--exporters", exporters.is_wanted),
        ("--exporter-web-config", bool(exporters.web_config), "--exporters", exporters.is_wanted),
        (
            "--exporter-runtime-class",
            exporters.runtime_class is not None,
            "--exporters",
            exporters.is_wanted,
        ),
        ("--monitoring-label", bool(monitoring.labels), "--monitoring", monitoring.is_wanted),
    )
    for option, is_given, subject, is_rendered in about:
        if is_given and not is_rendered:
            yield f"{option} changes nothing without {subject}"


def _further_resources(documents: Path | None) -> tuple[str, ...]:
    """Return the names of resources that a policy set gives."""
    profiles = policies_from(Compiler(), documents).profiles.values() if documents else ()
    return tuple(sorted({profile.resource for profile in profiles}))


def _exporters(
    options: ManifestOptions, exporters: Exporters, further: tuple[str, ...]
) -> ExporterOptions:
    chosen = exporters.runtime_class
    wanted = ExporterOptions(
        options=options,
        namespace=_exporter_namespace(options),
        image=exporters.image or EXPORTER_IMAGE,
        runtime_class=RUNTIME_CLASS if chosen is None else chosen,
        further_resources=further,
        web_config=exporters.web_config,
    )
    _refuse(wanted.problems())
    return wanted


def _monitoring(
    options: ManifestOptions, exporters: Exporters, monitoring: Monitoring
) -> MonitoringOptions:
    labels = {}
    for text in monitoring.labels:
        name, equals, value = text.partition("=")
        if not equals:
            raise _bad(f"--monitoring-label {text!r}: write it as NAME=VALUE")
        labels[name] = value
    namespace = _exporter_namespace(options) if exporters.is_wanted else ""
    wanted = MonitoringOptions(options, labels, namespace, exporters.web_config)
    _refuse(wanted.problems())
    return wanted


def _exporter_namespace(options: ManifestOptions) -> str:
    """Return where exporters are: where they are looked for."""
    return options.telemetry.environment.get(FLAGS["exporter_namespace"]) or EXPORTER_NAMESPACE


def _scheduler(
    options: ManifestOptions, placement: Placement, further: tuple[str, ...]
) -> SchedulerOptions:
    if placement.url and not is_webhook_url(placement.url):
        raise _bad(f"--extender-url {placement.url!r}: write it as https://host:port")
    environment = variables("--extender-env", placement.environment)
    _refuse(environment_problems({**options.telemetry.told, **environment}))
    return SchedulerOptions(
        options=options,
        asker=Asker(placement.asker or Asker.DEFAULT),
        url=placement.url,
        image=placement.image or SCHEDULER_IMAGE,
        further_resources=further,
        environment=environment,
        calls=Calls(placement.calls) if placement.calls else None,
    )


def taken_placement(options: dict[str, Any], documents: Path | None) -> Placement:
    """Take the scheduler extender's part out of the command's options."""
    return Placement(
        asker=options.pop("scheduler"),
        url=options.pop("extender_url"),
        environment=options.pop("extender_env"),
        image=options.pop("scheduler_image"),
        documents=documents,
        calls=options.pop("scheduler_calls"),
    )


def taken_telemetry(options: dict[str, Any]) -> TelemetryOptions:
    """Take telemetry's part out of the command's options. Raises BadInputError."""
    more = variables("--telemetry-env", options.pop("telemetry_env"))
    own = ("prometheus_secret", "exporter_secret", "exporter_audience")
    return TelemetryOptions({**more, **taken(options)}, *(options.pop(each) for each in own))


def variables(option: str, texts: Iterable[str]) -> Mapping[str, str]:
    """Return the environment variables that an option gives. Raises BadInputError."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise _bad(f"{option} {text!r}: write it as NAME=VALUE")
        found[name] = value
    return found


def taken_replicas(options: dict[str, Any]) -> dict[str, Any]:
    """Take the replicas and processes out of the command's options, by ManifestOptions' names.

    Raises BadInputError for reconcilers that are not apart.
    """
    processes, reconcilers = Processes(options.pop("processes")), options.pop("reconcilers")
    if reconcilers is None:
        return {"processes": processes}
    if processes is not Processes.APART:
        raise _bad("--reconcilers changes nothing without --processes apart")
    return {"processes": processes, "reconcilers": reconcilers}


def taken_exporters(options: dict[str, Any]) -> Exporters:
    """Take the exporters' part out of the command's options."""
    names = ("exporters", "exporter_image", "exporter_runtime_class", "exporter_web_config")
    return Exporters(*(options.pop(name) for name in names))


def taken_monitoring(options: dict[str, Any]) -> Monitoring:
    """Take monitoring's part out of the command's options."""
    return Monitoring(options.pop("monitoring"), options.pop("monitoring_label"))


def _refuse(messages: Iterable[str]) -> None:
    problems = [Problem(Severity.ERROR, message) for message in messages]
    if problems:
        raise BadInputError(problems)


def _bad(message: str) -> BadInputError:
    return BadInputError([Problem(Severity.ERROR, message)])
