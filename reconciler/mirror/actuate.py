# SPDX-License-Identifier: Apache-2.0
"""Sends what was planned to the API server. What is to be done is not decided here."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

from policies.documents.kinds import Kind
from policies.model.keys import (
    API_VERSION,
    DIGEST,
    FILE,
    GENERATION,
    SOURCE_FILE,
    SOURCE_LABEL,
)
from reconciler.kube.document_resources import resource_of
from reconciler.kube.errors import NotFoundError
from reconciler.kube.resources import Target
from reconciler.mirror.plan import Command, Delete, Tell, Write
from reconciler.mirror.view import ACCEPTED

FIELD_MANAGER: Final = "sluice"
STATUS_MANAGER: Final = "sluice-accepted"
"""Apart from whoever writes the rest of a status."""

Object = dict[str, object]


class Writer(Protocol):
    """The part of a client that is needed."""

    async def apply(
        self, target: Target, body: Mapping[str, object], *, field_manager: str, force: bool = True
    ) -> Mapping[str, object]:
        """Server-side apply."""
        ...

    async def delete(self, target: Target, *, uid: str = "") -> Mapping[str, object]:
        """Delete an object, only the one with this uid."""
        ...


async def carry_out(writer: Writer, command: Command, generation: str, now: datetime) -> None:
    """Do one thing; `generation` is that of the set which it is done for. Raises ApiError."""
    match command:
        case Write(document, version):
            target = Target(resource_of(document.kind), document.name)
            # One that appeared in between may be somebody's own: its values are not forced.
            await writer.apply(
                target,
                mirror_of(command, generation),
                field_manager=FIELD_MANAGER,
                force=bool(version),
            )
        case Delete(found):
            try:
                await writer.delete(Target(resource_of(found.kind), found.name), uid=found.uid)
            except NotFoundError:
                return
        case Tell(found):
            target = Target(resource_of(found.kind), found.name, subresource="status")
            await writer.apply(target, status_of(command, now), field_manager=STATUS_MANAGER)


def mirror_of(command: Write, generation: str) -> Object:
    """Return the object as it is applied; with a version only that one is changed."""
    document = command.document
    metadata: Object = {
        "name": document.name,
        "labels": {**document.labels, SOURCE_LABEL: SOURCE_FILE},
        "annotations": {
            **document.annotations,
            FILE: document.file,
            GENERATION: generation,
            DIGEST: document.digest,
        },
    }
    if command.version:
        metadata["resourceVersion"] = command.version
    return {**_head(document.kind), "metadata": metadata, "spec": document.spec}


def status_of(command: Tell, now: datetime) -> Object:
    """Return the status as it is applied, with the one condition that is said here."""
    found, told = command.found, command.acceptance
    known = found.acceptance
    is_same = known is not None and known.is_accepted == told.is_accepted and found.since
    condition: Object = {
        "type": ACCEPTED,
        "status": "True" if told.is_accepted else "False",
        "reason": told.reason,
        "message": told.message,
        "lastTransitionTime": found.since if is_same else _rfc3339(now),
        "observedGeneration": told.observed_generation,
    }
    return {
        **_head(found.kind),
        "metadata": {"name": found.name, "uid": found.uid},
        "status": {
            "observedGeneration": told.observed_generation,
            "source": told.source,
            "conditions": [condition],
        },
    }


def _head(kind: Kind) -> Object:
    return {"apiVersion": API_VERSION, "kind": str(kind)}


def _rfc3339(now: datetime) -> str:
    """Write a time as Kubernetes does: in UTC, to the second."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
