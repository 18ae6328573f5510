# SPDX-License-Identifier: Apache-2.0
"""Puts the reconciler together as a process of its own: the leader, or one of its standbys.

Here is decided what is connected to what. The webhook is another process, or starts the same
controllers beside itself; it is not known here.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.kube.access import AccessSource, find_access
from reconciler.kube.client import Client
from reconciler.kube.tls_secret import KeptCertificates
from reconciler.manager import Election, run_as_candidate
from reconciler.placement.starting import placement_of
from reconciler.runtime.api_contact import ApiContact
from reconciler.runtime.api_documents import ApiDocuments
from reconciler.runtime.audit import AuditLog
from reconciler.runtime.audit_file import Rotation
from reconciler.runtime.document_health import count_documents, document_conditions
from reconciler.runtime.documents import DocumentState, DocumentWatcher
from reconciler.runtime.health import Readiness
from reconciler.runtime.listener import Address, Listener
from reconciler.runtime.loading import Compiler
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.signals import stop_on_signals
from reconciler.runtime.surroundings import Surroundings
from reconciler.runtime.tasks import supervise
from reconciler.telemetry.starting import made, telemetry_of

_AUDIT_SECONDS = 5.0
"""How long the last audit lines may take to be written when the process ends."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where things are. `audit` is a path or `-` for standard output.

    `flags` is what further flags say, by the environment variables that they win over.
    """

    policies: Path
    kubeconfig: str
    audit: str
    election: Election
    address: Address = field(default_factory=Address)
    rotation: Rotation = field(default_factory=Rotation)
    flags: Mapping[str, str] = field(default_factory=dict)
    certificates: KeptCertificates | None = None


async def run_reconciler(options: Options) -> None:
    """Campaign, and run the controllers while leading, until SIGTERM or SIGINT.

    The Lease is given back at the end. Raises StartError, AccessError, AuditFileError,
    OSError.
    """
    access = find_access(os.environ, kubeconfig=options.kubeconfig)
    async with Client(access) as client:
        await _Process(options, access, client).run()


class _Process:
    def __init__(self, options: Options, access: AccessSource, client: Client) -> None:
        compiler = Compiler()
        self._options = options
        self._metrics = Metrics()
        self._api = ApiDocuments(client)
        self._documents = DocumentWatcher(
            options.policies, compiler.load, more=self._api, on_change=self._documents_changed
        )
        self._contact = ApiContact(client)
        self._audit = AuditLog(options.audit, self._metrics, options.rotation)
        self._listener = Listener(options.address, self._metrics, self._readiness)
        self._surroundings = Surroundings(
            access=access,
            client=client,
            documents=self._documents,
            catalog=compiler.catalog,
            metrics=self._metrics,
            audit=self._audit,
            telemetry=made(telemetry_of(options.flags), client, self._metrics),
            placement=placement_of(options.flags),
            certificates=options.certificates,
        )

    async def run(self) -> None:
        controllers = run_as_candidate(self._options.election)
        try:
            await self._documents.refresh()
            with stop_on_signals() as events:
                await supervise(
                    {
                        "listener": self._listener.run(events.stop),
                        "policy documents": self._documents.run(),
                        "API documents": self._api.run(),
                        "contact with the API server": self._contact.run(),
                        **controllers(self._surroundings),
                    }
                )
        finally:
            self._audit.close(_AUDIT_SECONDS)

    def _readiness(self) -> Readiness:
        """Return the conditions of a standby; who leads is a metric, for one must never suffice."""
        conditions = document_conditions(self._documents.state, self._api)
        return Readiness((*conditions, self._contact.condition()))

    def _documents_changed(self, state: DocumentState) -> None:
        count_documents(self._metrics, state)
