# SPDX-License-Identifier: Apache-2.0
"""What metrics and readiness say of the documents that a process serves.

The same for the webhook and for the reconciler; how documents are loaded is not known here.
"""

import time
from collections.abc import Callable

from policies.documents.problems import Severity
from reconciler.runtime.documents import DocumentState, MoreSources
from reconciler.runtime.health import (
    Condition,
    api_documents_condition,
    documents_condition,
    policies_condition,
)
from reconciler.runtime.metrics import Metrics

_MOST_ERRORS = 3


def count_documents(
    metrics: Metrics, state: DocumentState, wall_clock: Callable[[], float] = time.time
) -> None:
    """State in the metrics which set is served, or that the newest content cannot be."""
    if state.policy_set is not None and not state.is_broken:
        metrics.policies_loaded(state.policy_set.generation, wall_clock())
    if state.is_broken:
        metrics.policies_broken()


def document_conditions(state: DocumentState, api: MoreSources | None) -> tuple[Condition, ...]:
    """Return the conditions of readiness; `api` are the documents of the cluster, if any count."""
    policies = state.policy_set
    errors = [str(p) for p in state.problems if p.severity is Severity.ERROR]
    problem = "; ".join(errors[:_MOST_ERRORS]) if state.is_broken else None
    return (
        policies_condition(policies.generation if policies else None),
        *((api_documents_condition(synced=api.is_synced),) if api is not None else ()),
        documents_condition(problem),
    )
