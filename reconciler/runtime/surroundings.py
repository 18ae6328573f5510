# SPDX-License-Identifier: Apache-2.0
"""What a process has for its controllers, whether it leads or not; values only."""

from collections.abc import Callable
from dataclasses import dataclass, field

from policies.model.policyset import PolicySet
from policies.vendors import Catalog
from reconciler.kube.access import AccessSource
from reconciler.kube.client import Client
from reconciler.kube.reflector import Runtime
from reconciler.runtime.audit import AuditLog
from reconciler.runtime.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`policies` returns the set that is served now, None before a good one was loaded."""

    access: AccessSource
    client: Client
    policies: Callable[[], PolicySet | None]
    catalog: Catalog
    metrics: Metrics
    audit: AuditLog
    runtime: Runtime = field(default_factory=Runtime)
