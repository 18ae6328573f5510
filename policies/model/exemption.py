# SPDX-License-Identifier: Apache-2.0
"""Exemptions: who is spared which policy, why and until when."""

from dataclasses import dataclass
from datetime import datetime

from policies.model.labels import LabelSelector


@dataclass(frozen=True, slots=True)
class Exemption:
    """Kind `Exemption`. None of an aspect: it does not matter. Users are exact names.

    From `expires_at` on (aware, UTC) it no longer counts, and is reported.
    """

    name: str
    policies: frozenset[str]
    reason: str
    expires_at: datetime
    tenants: frozenset[str] | None = None
    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None
    labels: LabelSelector | None = None
