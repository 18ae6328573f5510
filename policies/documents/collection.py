# SPDX-License-Identifier: Apache-2.0
"""All documents of one load, compiled one by one and not yet compared with one another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policies.documents.compiled import Compiled
from policies.documents.policytest import PolicyTestDocument
from policies.model.exemption import Exemption
from policies.model.policy import Policy
from policies.model.pool import Pool
from policies.model.profile import Profile
from policies.model.reclaim import ReclaimPolicy
from policies.model.settings import Settings
from policies.model.tenant import Tenant


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents by kind, in the order of their sources, duplicates too.

    `shipped` are the ready-made profiles. Where `complete` is False a document could not be read,
    so that a name that seems missing may well be in it; `unidentified` are names of unknown kinds.
    """

    settings: tuple[Compiled[Settings], ...]
    tenants: tuple[Compiled[Tenant], ...]
    profiles: tuple[Compiled[Profile | None], ...]
    policies: tuple[Compiled[Policy], ...]
    exemptions: tuple[Compiled[Exemption], ...]
    pools: tuple[Compiled[Pool], ...]
    reclaim_policies: tuple[Compiled[ReclaimPolicy], ...]
    tests: tuple[Compiled[PolicyTestDocument], ...]
    shipped: Mapping[str, Profile]
    complete: bool = True
    unidentified: frozenset[str] = frozenset()

    def by_kind(self) -> Iterator[tuple[Compiled[object], ...]]:
        """Yield the documents of each kind."""
        yield self.settings
        yield self.tenants
        yield self.profiles
        yield self.policies
        yield self.exemptions
        yield self.pools
        yield self.reclaim_policies
        yield self.tests

    def known_profiles(self) -> Mapping[str, Profile | None]:
        """Return every profile by name; a user's document goes before the shipped one."""
        return {**self.shipped, **{item.name: item.value for item in self.profiles}}
