# SPDX-License-Identifier: Apache-2.0
"""Where exporters can be scraped: their pods, found by label and kept current by watches."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from policies.cluster.reading import mapping, mappings, text
from policies.telemetry.names import Exporter
from reconciler.kube.reflector import Reflector, Runtime, Source
from reconciler.kube.resources import PODS, Selection

_RUNTIME: Final = Runtime()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An exporter's page, and the node whose cards it shows."""

    node: str
    url: str


@dataclass(frozen=True, slots=True)
class ExporterPods:
    """Which pods are an exporter's. Without selectors those of the exporter's data are taken.

    `tls` is for exporters with a web configuration. Raises ValueError for a port that is none.
    """

    exporter: Exporter
    selectors: tuple[str, ...] = ()
    namespace: str = ""
    port: int = 0
    tls: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:  # noqa: PLR2004 - what a port may be
            raise ValueError(f"{self.port} is no port")

    @property
    def selections(self) -> tuple[Selection, ...]:
        """Return what is to be watched."""
        selectors = self.selectors or self.exporter.discovery.selectors
        return tuple(
            Selection(PODS, namespace=self.namespace, label_selector=each) for each in selectors
        )

    def endpoint(self, pod: Mapping[str, object]) -> Endpoint | None:
        """Return a raw Pod's endpoint; None while it has no address or has ended."""
        status, spec = mapping(pod, "status"), mapping(pod, "spec")
        node, address = text(spec, "nodeName"), _address(text(status, "podIP"))
        if not node or not address or text(status, "phase") != "Running":
            return None
        port = self.port or self._named_port(spec) or self.exporter.discovery.port
        scheme = "https" if self.tls else "http"
        return Endpoint(node, f"{scheme}://{address}:{port}{self.exporter.discovery.path}")

    def _named_port(self, spec: Mapping[str, object]) -> int:
        for container in mappings(spec, "containers"):
            for port in mappings(container, "ports"):
                number = port.get("containerPort")
                if text(port, "name") in self.exporter.discovery.port_names and isinstance(
                    number, int
                ):
                    return number
        return 0


class Endpoints:
    """The endpoints of all exporters, current while `run` runs."""

    def __init__(
        self, source: Source, pods: Iterable[ExporterPods], runtime: Runtime = _RUNTIME
    ) -> None:
        self._reflectors = tuple(
            Reflector(source, selection, each.endpoint, runtime=runtime)
            for each in pods
            for selection in each.selections
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run(), name="pods of exporters")

    async def wait_synced(self) -> None:
        """Return once all have been listed."""
        for reflector in self._reflectors:
            await reflector.synced.wait()

    def __iter__(self) -> Iterator[Endpoint]:
        seen: set[str] = set()
        for reflector in self._reflectors:
            for endpoint in reflector.values():
                # A pod may carry the labels of two selectors.
                if endpoint.url not in seen:
                    seen.add(endpoint.url)
                    yield endpoint


def _address(raw: str) -> str:
    """Return an IP address as a URL holds it; empty for anything else."""
    try:
        address = ip_address(raw)
    except ValueError:
        return ""
    return f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004 - IPv6
