# SPDX-License-Identifier: Apache-2.0
"""The question: one admission request, taken out of its envelope.

Source of the wire format: Kubernetes `admission.k8s.io/v1` AdmissionRequest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

JsonObject: TypeAlias = Mapping[str, object]
"""Parsed JSON, never changed in place."""


class Operation(StrEnum):
    """What the API server is asked to do."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Phase(StrEnum):
    """Which of the two passes asks: the first rewrites, the second demands the rewrite."""

    MUTATE = "Mutate"
    VALIDATE = "Validate"


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as the API server authenticated them."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One admission request. `object` and `old_object` are raw JSON, never changed in place.

    `namespace` is the request's, which is the only one to trust; the object may lack it.
    `raw` is the request as sent, for the `request` variable of CEL.
    """

    phase: Phase
    operation: Operation
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: User
    object: JsonObject | None
    old_object: JsonObject | None
    uid: str = ""
    kind: str = ""
    dry_run: bool = False
    raw: JsonObject | None = None
