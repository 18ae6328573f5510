# SPDX-License-Identifier: Apache-2.0
"""Facts of a cluster: its picture, and beside it what tenants use.

Usage is apart, for it moves with every pod, and nothing waits for it: until it is known decisions
are taken without. How either is watched is not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from policies.model.facts import Facts
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


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """A FactsSource of the two. It is synced by the picture alone."""

    picture: Picture
    usages: Usages

    def facts(self, now: datetime) -> Facts:
        """Return the newest picture and usage."""
        return replace(self.picture.facts(now), usage=self.usages.usage())

    @property
    def is_synced(self) -> bool:
        """Tell whether there has been a whole picture yet."""
        return self.picture.is_synced
