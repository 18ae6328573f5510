# SPDX-License-Identifier: Apache-2.0
"""What every part of one pod's decision is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.model.decision import Violation
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.request import Request
from policies.model.tenant import Tenant
from policies.pod.asked import Asked
from policies.pod.view import PodView


@dataclass(frozen=True, slots=True)
class Context:
    """The question in full. `pod` is the original: restored, and void where no GPU is asked.

    `tenant` is None in a namespace of none, and where `untold` says why it cannot be told.
    `received` is the pod as it came, `claimed` what the first pass says to have given, by
    container; `overridden` are the variables, by container, that policy sets itself or
    has refused.
    """

    policies: PolicySet
    facts: Facts
    request: Request
    received: PodView
    pod: PodView
    asked: tuple[Asked, ...]
    tenant: Tenant | None
    untold: Violation | None
    claimed: Mapping[str, str] = field(default_factory=dict)
    overridden: frozenset[tuple[str, str]] = frozenset()

    @property
    def takes_gpus(self) -> bool:
        """Tell whether any container asks more than 0."""
        return any(asked.counts for asked in self.asked)
