# SPDX-License-Identifier: Apache-2.0
"""Tenants: who owns namespaces and quota."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from policies.model.labels import LabelSelector


@dataclass(frozen=True, slots=True)
class Tenant:
    """Kind `Tenant`. Quotas are milli-GPU; None means that none is set.

    `cel` is the value of the `tenant` variable, built once.
    """

    name: str
    namespaces: frozenset[str]
    selector: LabelSelector | None
    guarantee_milli: int | None = None
    ceiling_milli: int | None = None
    profiles: tuple[str, ...] | None = None
    cohort: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    cel: Mapping[str, object] = field(default_factory=dict)

    def may_use(self, profile: str) -> bool:
        """Tell whether the tenant's list of profiles (shell patterns) allows this one."""
        return self.profiles is None or any(fnmatchcase(profile, glob) for glob in self.profiles)
