# SPDX-License-Identifier: Apache-2.0
"""The profiles that policies name, and who may use them: looked up once for a whole set."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import filter as matching
from functools import cached_property

from policies.documents.field import Field
from policies.model.facts import ClusterFacts
from policies.model.profile import Profile
from policies.model.tenant import Tenant
from policies.rewrite.offers import offer
from policies.vendors import Catalog

_Allowed = tuple[str, ...] | None
"""A tenant's list of profiles as written; many tenants have the same."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A profile that a policy may give, the field that names it, and what one unit holds (MiB).

    `memory_mib` is None where only a node can tell.
    """

    named: Field
    profile: Profile
    memory_mib: int | None


class Candidates:
    """All profiles and tenants of a set; of two tenants with one list only one is looked at."""

    def __init__(
        self,
        profiles: Mapping[str, Profile | None],
        tenants: Mapping[str, Tenant],
        catalog: Catalog,
    ) -> None:
        self.tenants = tenants
        self._profiles = profiles
        self._catalog = catalog
        self._cluster = ClusterFacts({})
        self._by_pattern: dict[str, frozenset[str]] = {}

    def named_by(self, fields: Iterable[Field]) -> list[Candidate]:
        """Return the profiles that fields name; what is missing or at fault is left out."""
        named = ((field, self._profiles.get(field.text())) for field in fields)
        return [Candidate(f, profile, self._mib(profile)) for f, profile in named if profile]

    def may_use(self, tenant: Tenant, profile: str) -> bool:
        """Tell whether a tenant may use a profile."""
        return tenant.profiles in self.users(profile)

    def users(self, profile: str) -> frozenset[_Allowed]:
        """Return the lists, of those that tenants have, that allow a profile."""
        return self._users.get(profile, frozenset())

    @cached_property
    def _users(self) -> Mapping[str, frozenset[_Allowed]]:
        users: dict[str, set[_Allowed]] = {}
        for allowed in dict.fromkeys(tenant.profiles for tenant in self.tenants.values()):
            for name in self._profiles if allowed is None else self._matched(allowed):
                users.setdefault(name, set()).add(allowed)
        return {name: frozenset(lists) for name, lists in users.items()}

    def _matched(self, patterns: tuple[str, ...]) -> frozenset[str]:
        for pattern in patterns:
            if pattern not in self._by_pattern:
                self._by_pattern[pattern] = frozenset(matching(self._profiles, pattern))
        return frozenset[str]().union(*(self._by_pattern[pattern] for pattern in patterns))

    def _mib(self, profile: Profile) -> int | None:
        return offer(profile, self._cluster, self._catalog, "").memory_mib
