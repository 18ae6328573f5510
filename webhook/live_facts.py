# SPDX-License-Identifier: Apache-2.0
"""Facts of a cluster: its picture, and beside it what tenants use and who leads.

Usage is apart, for it moves with every pod. Nothing waits for it or for the leader's term: until
they are known decisions are taken without. How any of it is watched is not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from policies.model.facts import Facts
from policies.model.term import LeaseTerm
from policies.model.usage import TenantUsage


class Picture(Protocol):
    """Nodes and namespaces as they are now."""

    def facts(self, now: datetime) -> Facts:
        """Return the newest picture."""
        ...

    @property
    def is_synced(self) -> bool:
        """Tell whether there has been a whole picture yet."""
        ...


class Usages(Protocol):
    """What tenants use now."""

    def usage(self) -> Mapping[str, TenantUsage]:
        """Return it by tenant's name, as far as it is known."""
        ...


class Terms(Protocol):
    """Who leads now."""

    def term(self) -> LeaseTerm | None:
        """Return the newest term of the Lease, if any was seen."""
        ...


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """A FactsSource of the three. It is synced by the picture alone."""

    picture: Picture
    usages: Usages
    terms: Terms

    def facts(self, now: datetime) -> Facts:
        """Return the newest picture, usage and term."""
        found = self.picture.facts(now)
        return replace(found, usage=self.usages.usage(), term=self.terms.term())

    @property
    def is_synced(self) -> bool:
        """Tell whether there has been a whole picture yet."""
        return self.picture.is_synced
