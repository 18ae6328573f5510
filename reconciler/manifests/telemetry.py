# SPDX-License-Identifier: Apache-2.0
"""What every process that reads telemetry is given: its variables, and a Secret of credentials.

What the variables mean is not known here, but for whether nodes are written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.documents.kubernetes_names import is_dns_subdomain
from reconciler.placement.settings import placement_from_environment
from reconciler.telemetry.config import config_from_environment
from reconciler.telemetry.kinds import SourceKind

CREDENTIALS_DIRECTORY: Final = "/etc/sluice/prometheus"
"""Where the Secret is mounted; its keys are files there."""

_VOLUME: Final = "prometheus"

Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """`environment` sets telemetry up; `secret` names a Secret of the installation's namespace."""

    environment: Mapping[str, str] = field(default_factory=dict)
    secret: str = ""

    def problems(self) -> Iterator[str]:
        """Yield what the processes would refuse to start with, or the API server to take."""
        yield from environment_problems(self.environment)
        if self.secret and not is_dns_subdomain(self.secret):
            yield f"--prometheus-secret {self.secret!r}: this is no name of a Secret"

    @property
    def writes_nodes(self) -> bool:
        """Whether the leader writes what it has sampled into nodes' annotations."""
        config = config_from_environment(self.environment)
        return config.source is not SourceKind.NONE and config.writes_annotations

    def variables(self, more: Mapping[str, str] | None = None) -> list[Object]:
        """Return the variables as a container has them; `more` win over telemetry's own."""
        together = {**self.environment, **(more or {})}
        return [{"name": name, "value": value} for name, value in together.items()]

    def volumes(self) -> list[Object]:
        """Return the volume of the credentials, if there are any."""
        if not self.secret:
            return []
        return [{"name": _VOLUME, "secret": {"secretName": self.secret, "defaultMode": 0o440}}]

    def mounts(self) -> list[Object]:
        """Return where a container has it."""
        if not self.secret:
            return []
        return [{"name": _VOLUME, "mountPath": CREDENTIALS_DIRECTORY, "readOnly": True}]


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
