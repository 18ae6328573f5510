# SPDX-License-Identifier: Apache-2.0
"""The flags of every command that reads telemetry; each has a variable that says the same.

Light to import, since every command line reads it. What the values mean is `config`'s matter.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from reconciler.runtime.choices import Choice
from reconciler.telemetry.kinds import SourceKind

Command = TypeVar("Command", bound=Callable[..., Any])

FLAGS: Final = {
    "telemetry_source": "SLUICE_TELEMETRY_SOURCE",
    "prometheus_url": "PROMETHEUS_URL",
    "prometheus_token_file": "PROMETHEUS_TOKEN_FILE",
    "prometheus_ca_file": "PROMETHEUS_CA_FILE",
    "prometheus_tenant": "PROMETHEUS_TENANT",
    "prometheus_server_name": "PROMETHEUS_SERVER_NAME",
    "exporter_selector": "SLUICE_EXPORTER_SELECTOR",
    "exporter_namespace": "SLUICE_EXPORTER_NAMESPACE",
    "exporter_scheme": "SLUICE_EXPORTER_SCHEME",
    "exporter_token_file": "SLUICE_EXPORTER_TOKEN_FILE",
    "exporter_ca_file": "SLUICE_EXPORTER_CA_FILE",
    "exporter_server_name": "SLUICE_EXPORTER_SERVER_NAME",
}
"""The variable of each flag; a flag that is given wins."""

_HELP: Final = {
    "prometheus_url": "Where telemetry is from",
    "prometheus_token_file": "File of the bearer token for Prometheus, read again as it changes",
    "prometheus_ca_file": "File of the CA of Prometheus",
    "prometheus_tenant": "Tenant of Prometheus, sent as X-Scope-OrgID",
    "prometheus_server_name": "Whom the certificate of Prometheus is for, if not for its address",
    "exporter_selector": "Labels of the exporters' pods, where they are scraped",
    "exporter_namespace": "Namespace of the exporters' pods, where they are scraped",
    "exporter_scheme": "http (the default) or https, for exporters that are scraped",
    "exporter_token_file": "File of the bearer token for exporters, read again as it changes",
    "exporter_ca_file": "File of the CA of exporters",
    "exporter_server_name": "Whom the certificates of exporters are for; pods' addresses change",
}


def telemetry_options(command: Command) -> Command:
    """Add the options of telemetry to a command."""
    for flag, text in reversed(_HELP.items()):
        command = click.option(_name(flag), help=f"{text}; also ${FLAGS[flag]}.")(command)
    return click.option(
        _name("telemetry_source"),
        type=Choice([str(kind) for kind in SourceKind], case_sensitive=False),
        help="Where telemetry is from; by default Prometheus, if its URL is given; also "
        f"${FLAGS['telemetry_source']}.",
    )(command)


def taken(options: dict[str, Any], flags: Mapping[str, str] = FLAGS) -> dict[str, str]:
    """Take flags out of a command's options; return what they say, by their variables."""
    given = {variable: options.pop(flag) for flag, variable in flags.items()}
    return {variable: str(value) for variable, value in given.items() if value is not None}


def _name(flag: str) -> str:
    return f"--{flag.replace('_', '-')}"
