# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have, each with the same words everywhere."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from policies.documents.kubernetes_names import is_dns_label, is_dns_subdomain
from reconciler.kube.tls_secret import KeptCertificates
from reconciler.runtime.choices import Choice
from reconciler.runtime.option_names import name_of

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]

KUBECONFIG: Final = click.option(
    "--kubeconfig",
    default="",
    help="By default $KUBECONFIG, then the pod's service account, then ~/.kube/config.",
)
LOADS: Final = click.option(
    "--prometheus",
    "--prometheus-url",
    "prometheus",
    default="",
    metavar="URL",
    help="Where loads are read; also $PROMETHEUS_URL, with what stands beside it.",
)
POLICIES: Final = click.option(
    "--policies",
    type=click.Path(exists=True, path_type=Path),
    default="policies.d",
    show_default=True,
    envvar="SLUICE_POLICIES",
    help="Directory of policy documents, or one file.",
)
_AUDIT: Final = click.option(
    "--audit",
    default="-",
    show_default=True,
    envvar="SLUICE_AUDIT",
    help="File of the audit log, rotated by size and age; `-` is standard output.",
)
_LOG_FORMAT: Final = click.option("--log-format", type=Choice(["text", "json"]), default="text")
_LOG_LEVEL: Final = click.option(
    "--log-level",
    type=Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
)


def records(command: Command) -> Command:
    """Add where the audit log and the log of a process go."""
    return with_options(command, (_AUDIT, _LOG_FORMAT, _LOG_LEVEL))


def kept_certificates(command: Command) -> Command:
    """Add where certificates are that the leader keeps; `taken_certificates` reads it."""
    secret = click.option(
        "--certificates-secret",
        callback=_secret,
        metavar="[NAMESPACE/]NAME",
        envvar="SLUICE_CERTIFICATES_SECRET",
        help="Secret with the certificate that the leader makes, renews and has trusted; "
        "watched by all. In namespace sluice if none is given.",
    )
    installation = click.option(
        "--installation",
        default="sluice",
        show_default=True,
        help="Name of the installed objects, such as the webhook configurations.",
    )
    return with_options(command, (secret, installation))


def taken_certificates(options: dict[str, Any]) -> KeptCertificates | None:
    """Take the options of `kept_certificates` out of all, and return what they say."""
    place, installation = options.pop("certificates_secret"), options.pop("installation")
    if place is None:
        return None
    namespace, secret = place
    return KeptCertificates(namespace, secret, installation)


def _secret(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, str] | None:
    if value is None:
        return None
    namespace, slash, name = value.rpartition("/")
    place = (namespace if slash else "sluice", name)
    if not all(map(is_dns_label, place)):
        raise click.BadParameter(f"{value!r}: write it as NAME or NAMESPACE/NAME")
    return place


def lease(command: Command) -> Command:
    """Add the options of the Lease, which the webhook watches and a leader holds."""
    namespace = click.option(
        "--lease-namespace",
        default="sluice",
        show_default=True,
        callback=name_of(is_dns_label),
        help="Where the Lease is by which one of all replicas leads.",
    )
    name = click.option(
        "--lease-name", default="sluice", show_default=True, callback=name_of(is_dns_subdomain)
    )
    return with_options(command, (namespace, name))


def election(command: Command) -> Command:
    """Add by which Lease, and as whom, a process may lead."""
    identity = click.option(
        "--identity",
        default="",
        help="Who this is in the Lease; by default the host's name and a UUID.",
    )
    return lease(with_options(command, (identity,)))


def with_options(command: Command, options: Sequence[Option]) -> Command:
    """Add options, which --help shows in this order, before those that are there."""
    for option in reversed(options):
        command = option(command)
    return command
