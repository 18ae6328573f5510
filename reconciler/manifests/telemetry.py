# SPDX-License-Identifier: Apache-2.0
"""What every process that reads telemetry is given: its variables, credentials and CAs.

What the variables mean is not known here, but for whether nodes are written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.documents.kubernetes_names import is_dns_subdomain
from reconciler.placement.settings import placement_from_environment
from reconciler.telemetry.access import EXPORTER, variable
from reconciler.telemetry.config import config_from_environment
from reconciler.telemetry.kinds import SourceKind

CREDENTIALS_DIRECTORY: Final = "/etc/sluice/prometheus"
"""Where the Secret is mounted; its keys are files there."""

EXPORTERS_DIRECTORY: Final = "/etc/sluice/exporters"
"""Where that for exporters is, with the token of the service account as the file `token`."""

_VOLUME: Final = "prometheus"
_EXPORTERS: Final = "exporters"
_BEARER: Final = "token"
_TOKEN_FILE: Final = variable(EXPORTER, "token_file")
_TOKEN_SECONDS: Final = 3600
_MODE: Final = 0o440

Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """`environment` sets telemetry up; Secrets are of the installation's namespace.

    With an `exporter_audience` processes get a token of their service account that is good for
    nothing else, as a proxy before exporters (kube-rbac-proxy) demands one.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    secret: str = ""
    exporter_secret: str = ""
    exporter_audience: str = ""

    def problems(self) -> Iterator[str]:
        """Yield what the processes would refuse to start with, or the API server to take."""
        problems = tuple(environment_problems(self.told))
        yield from problems
        if not problems and (self.exporter_secret or self.exporter_audience):
            yield from self._idle()
        for option, name in (
            ("--prometheus-secret", self.secret),
            ("--exporter-secret", self.exporter_secret),
        ):
            if name and not is_dns_subdomain(name):
                yield f"{option} {name!r}: this is no name of a Secret"

    @property
    def told(self) -> Mapping[str, str]:
        """Return the variables: those given, and where a token of the account is."""
        own = {_TOKEN_FILE: f"{EXPORTERS_DIRECTORY}/{_BEARER}"} if self.exporter_audience else {}
        return {**own, **self.environment}

    @property
    def writes_nodes(self) -> bool:
        """Whether the leader writes what it has sampled into nodes' annotations."""
        config = config_from_environment(self.told)
        return config.source is not SourceKind.NONE and config.writes_annotations

    def variables(self, more: Mapping[str, str] | None = None) -> list[Object]:
        """Return the variables as a container has them; `more` win over telemetry's own."""
        together = {**self.told, **(more or {})}
        return [{"name": name, "value": value} for name, value in together.items()]

    def volumes(self) -> list[Object]:
        """Return the volumes of credentials, if there are any."""
        found: list[Object] = []
        if self.secret:
            secret = {"secretName": self.secret, "defaultMode": _MODE}
            found.append({"name": _VOLUME, "secret": secret})
        if self._exporter_files():
            projected = {"sources": self._exporter_files(), "defaultMode": _MODE}
            found.append({"name": _EXPORTERS, "projected": projected})
        return found

    def mounts(self) -> list[Object]:
        """Return where a container has them."""
        return [
            {"name": name, "mountPath": path, "readOnly": True}
            for name, path, is_there in (
                (_VOLUME, CREDENTIALS_DIRECTORY, self.secret),
                (_EXPORTERS, EXPORTERS_DIRECTORY, self._exporter_files()),
            )
            if is_there
        ]

    def rules(self) -> tuple[Mapping[str, object], ...]:
        """Return what kube-rbac-proxy wants to be granted to whom it lets through."""
        if not self.exporter_audience:
            return ()
        return ({"nonResourceURLs": ["/metrics"], "verbs": ["get"]},)

    def _idle(self) -> Iterator[str]:
        if config_from_environment(self.told).source is not SourceKind.SCRAPE:
            option = "--exporter-secret" if self.exporter_secret else "--exporter-audience"
            yield f"{option} changes nothing without --telemetry-source {SourceKind.SCRAPE}"

    def _exporter_files(self) -> list[Object]:
        found: list[Object] = []
        if self.exporter_secret:
            found.append({"secret": {"name": self.exporter_secret}})
        if self.exporter_audience:
            token = {
                "audience": self.exporter_audience,
                "expirationSeconds": _TOKEN_SECONDS,
                "path": _BEARER,
            }
            found.append({"serviceAccountToken": token})
        return found


def environment_problems(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield what a process with this environment would refuse to start with."""
    for subject, parse in (
        ("telemetry", config_from_environment),
        ("placement", placement_from_environment),
    ):
        try:
            parse(environment)
        except ValueError as error:
            yield f"{subject}: {error}"
