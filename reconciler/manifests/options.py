# SPDX-License-Identifier: Apache-2.0
"""What an installation can choose, with the defaults of manifests/base."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from policies.documents.kubernetes_names import is_dns_label
from policies.vendors import Catalog
from reconciler.manifests.telemetry import TelemetryOptions
from reconciler.placement.flags import PREFERRED_NODES

SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "gpu-operator")
"""Where the cluster's own pods run: they must start while Sluice is down, or nothing mends it."""


class Processes(StrEnum):
    """How the webhook and the reconciler run."""

    TOGETHER = "together"
    """In one process, which does for small clusters: what reviews need is there for the leader."""
    APART = "apart"
    """Each in a process and with an account of its own; that of the webhook only reads."""


DEFAULT_IMAGE: Final = "sluice:0.1.0"
"""Of this version."""


@dataclass(frozen=True, slots=True)
class TlsSecret:
    """PEM texts for the Secret that the webhook serves with."""

    authority: bytes
    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class ManifestOptions:
    """One installation; `catalog` says which names are GPU-like.

    `replicas` answer reviews; `reconcilers` are further ones where `processes` are apart.
    `url` is where the API server reaches the webhook (https://host:port); None: by its Service.
    Without `ca_bundle` (PEM) the leader of this installation writes whom they trust.
    `has_mutating_admission_policy`: the cluster serves it as v1, as Kubernetes does from 1.36 on.
    `observe` renders an installation that can refuse and change nothing, even when it is down.
    `only_namespaces` limits it to these; empty means to all but the excluded.
    `has_crds` renders the kinds of documents too, which live as long as the documents do.
    `has_documents` renders the ConfigMap of documents, which is the user's once it is filled.
    """

    catalog: Catalog
    name: str = "sluice"
    namespace: str = "sluice"
    image: str = DEFAULT_IMAGE
    replicas: int = 2
    processes: Processes = Processes.TOGETHER
    reconcilers: int = 2
    url: str | None = None
    ca_bundle: bytes | None = None
    tls: TlsSecret | None = None
    account: str | None = None
    exclude_namespaces: tuple[str, ...] = ()
    only_namespaces: tuple[str, ...] = ()
    has_mutating_admission_policy: bool = True
    observe: bool = False
    has_crds: bool = True
    has_documents: bool = True
    telemetry: TelemetryOptions = field(default_factory=TelemetryOptions)
    preferred_nodes: int = 0

    def problems(self) -> Iterator[str]:
        """Yield what the API server would refuse of the objects that are rendered of this."""
        names: dict[str, tuple[str, ...]] = {"name": (self.name,), "namespace": (self.namespace,)}
        names |= {"exclude": self.exclude_namespaces, "only": self.only_namespaces}
        for option, values in names.items():
            for value in values:
                if not is_dns_label(value):
                    yield f"--{option} {value!r}: a name has lower-case letters, digits and `-`"
        if not self.image.strip():
            yield "--image: must not be empty"
        if self.replicas < 1:
            yield f"--replicas {self.replicas}: must be at least 1"
        if self.reconcilers < 1:
            yield f"--reconcilers {self.reconcilers}: must be at least 1"
        if self.url is not None and not is_webhook_url(self.url):
            yield f"--url {self.url!r}: write it as https://host:port"
        yield from self.telemetry.problems()

    @property
    def keeps_certificates(self) -> bool:
        """Tell whether the leader makes certificates and has them trusted, since none are given."""
        return self.tls is None and self.ca_bundle is None

    @property
    def leader_telemetry(self) -> TelemetryOptions:
        """Return what a process that may lead is told of telemetry, and of what it places by."""
        if not self.preferred_nodes:
            return self.telemetry
        own = {PREFERRED_NODES: str(self.preferred_nodes)}
        return replace(self.telemetry, environment={**self.telemetry.environment, **own})

    @property
    def username(self) -> str:
        """Return who Sluice is for the API server; it must be the account of `Settings`."""
        return self.account or f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def webhook_account(self) -> str:
        """Return the service account of who answers reviews.

        The account that writes has the same name either way, so that guards, settings and the
        Lease stay as they are when processes are taken apart or put together.
        """
        return f"{self.name}-webhook" if self.processes is Processes.APART else self.name

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels that every object carries."""
        return {"app.kubernetes.io/name": "sluice", "app.kubernetes.io/instance": self.name}

    @property
    def failure_policy(self) -> str:
        """Return what the API server does with a GPU pod that Sluice could not judge."""
        return "Ignore" if self.observe else "Fail"

    def namespace_selector(self) -> dict[str, object]:
        """Return whom Sluice guards: by name, which no tenant can change, never by pod labels."""
        excluded = dict.fromkeys((self.namespace, *SYSTEM_NAMESPACES, *self.exclude_namespaces))
        expressions = [_by_name("NotIn", tuple(excluded))]
        if self.only_namespaces:
            expressions.append(_by_name("In", self.only_namespaces))
        return {"matchExpressions": expressions}


def is_webhook_url(url: str) -> bool:
    """Tell whether the API server calls it. Source: apiserver `pkg/util/webhook` validation.go."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return (
        parts.scheme == "https"
        and bool(host)
        and not (parts.query or parts.fragment or "@" in parts.netloc)
    )


def _by_name(operator: str, names: tuple[str, ...]) -> dict[str, object]:
    return {
        "key": "kubernetes.io/metadata.name",
        "operator": operator,
        "values": list(names),
    }
