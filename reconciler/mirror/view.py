# SPDX-License-Identifier: Apache-2.0
"""What is looked at of the objects that are there: whose they are, and what their status says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.documents.kinds import Kind
from policies.documents.source import SourceText
from policies.model.keys import DIGEST
from reconciler.kube import raw
from reconciler.runtime.api_documents import is_mirror, to_source

ACCEPTED: Final = "Accepted"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The condition `Accepted` with what stands beside it in the status."""

    is_accepted: bool
    reason: str
    message: str
    source: str
    observed_generation: int


@dataclass(frozen=True, slots=True)
class Found:
    """One object. `source` is its document, where it is one; None for a mirror, which has a digest.

    `since` is when the condition last changed its mind (RFC 3339); `used` a tenant's GPUs.
    """

    kind: Kind
    name: str
    uid: str
    version: str
    generation: int
    source: SourceText | None
    digest: str
    acceptance: Acceptance | None
    since: str
    used: str

    @property
    def is_mirror(self) -> bool:
        """Tell whether Sluice has made it."""
        return self.source is None


def found(kind: Kind, item: Mapping[str, object]) -> Found:
    """Return the view of a raw object."""
    metadata, status = raw.mapping(item, "metadata"), raw.mapping(item, "status")
    condition = next(
        (c for c in raw.mappings(status, "conditions") if c.get("type") == ACCEPTED), None
    )
    return Found(
        kind=kind,
        name=raw.text(metadata, "name"),
        uid=raw.text(metadata, "uid"),
        version=raw.text(metadata, "resourceVersion"),
        generation=_number(metadata, "generation"),
        source=None if is_mirror(item) else to_source(kind, item),
        digest=raw.strings(metadata, "annotations").get(DIGEST, ""),
        acceptance=None if condition is None else _acceptance(condition, status),
        since="" if condition is None else raw.text(condition, "lastTransitionTime"),
        used=raw.text(status, "used"),
    )


def _acceptance(condition: Mapping[str, object], status: Mapping[str, object]) -> Acceptance:
    return Acceptance(
        raw.text(condition, "status") == "True",
        raw.text(condition, "reason"),
        raw.text(condition, "message"),
        raw.text(status, "source"),
        _number(status, "observedGeneration"),
    )


def _number(item: Mapping[str, object], field: str) -> int:
    value = item.get(field)
    return value if isinstance(value, int) else 0
