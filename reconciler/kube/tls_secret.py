# SPDX-License-Identifier: Apache-2.0
"""The certificate and key of a Secret as they are now, by a watch: no mount, no delay.

Whether they can be served is not judged here. Source: Kubernetes core/v1, `kubernetes.io/tls`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.kube import raw
from reconciler.kube.reflector import Reflector, Runtime, Source
from reconciler.kube.resources import SECRETS, Selection
from reconciler.kube.store import Change, Key

_RUNTIME: Final = Runtime()


@dataclass(frozen=True, slots=True)
class KeptCertificates:
    """Where the leader keeps certificates: the Secret that replicas serve from.

    `installation` is what the installation's objects are called, its webhook configurations too.
    """

    namespace: str
    secret: str
    installation: str = "sluice"

    @property
    def authority(self) -> str:
        """The name of the Secret with the authority's key, which only the leader reads."""
        return f"{self.installation}-authority"


@dataclass(frozen=True, slots=True)
class TlsData:
    """PEM texts, each empty where the Secret has none."""

    certificate: bytes
    key: bytes


class TlsSecret:
    """One Secret, watched while `run` runs."""

    def __init__(
        self, source: Source, namespace: str, name: str, runtime: Runtime = _RUNTIME
    ) -> None:
        self.namespace = namespace
        self.name = name
        selection = Selection(SECRETS, namespace, field_selector=f"metadata.name={name}")
        self._reflector = Reflector(source, selection, _data, runtime=runtime)

    def current(self) -> TlsData | None:
        """Return what it holds; None while it is not there, or not known yet."""
        return self._reflector.get(Key(self.namespace, self.name))

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Have `subscriber` called after every change."""

        def changed(_: Change[TlsData]) -> None:
            subscriber()

        self._reflector.subscribe(changed)

    async def run(self) -> None:
        """Watch until cancelled; raises only what is a fault of our own."""
        await self._reflector.run()


def _data(item: Mapping[str, object]) -> TlsData:
    found = raw.decoded(item, "data")
    return TlsData(found.get("tls.crt", b""), found.get("tls.key", b""))
