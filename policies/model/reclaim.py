# SPDX-License-Identifier: Apache-2.0
"""How lent GPUs are taken back."""

from dataclasses import dataclass
from enum import StrEnum


class AfterPdbTimeout(StrEnum):
    """What becomes of a borrowed pod that a disruption budget has protected for too long."""

    DELETE = "Delete"
    KEEP = "Keep"


@dataclass(frozen=True, slots=True)
class ReclaimPolicy:
    """Kind `ReclaimPolicy`, with the defaults of a cohort that none names.

    `cohorts` is None for all of them. Work that takes longer than `max_grace_seconds` to end cannot
    be taken back, so it must fit its tenant's guarantee.
    """

    name: str = ""
    cohorts: tuple[str, ...] | None = None
    enabled: bool = True
    notice_seconds: int = 120
    max_grace_seconds: int = 600
    pdb_timeout_seconds: int = 600
    after_pdb_timeout: AfterPdbTimeout = AfterPdbTimeout.DELETE
    readmit_after_seconds: int = 60
    """What was taken back does not borrow again sooner, so that nothing goes round in circles."""
