# SPDX-License-Identifier: Apache-2.0
"""The sums of what counts, by tenant and pool, beside lines of who waits and lists of what is odd.

What counts how is not decided here.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

from policies.quota.account import Account
from policies.quota.counting import COUNTS_NOTHING, Ruling, Share
from policies.quota.oddities import Odd, Oddity
from policies.quota.waiting import Line

ShareWatcher: TypeAlias = Callable[[str, Share | None], None]
"""Is told of a UID and what counts under it from now on."""


class Books:
    """Accounts, lines and oddities; every one of them empty is one that is not there."""

    def __init__(self) -> None:
        self._accounts: dict[str, dict[str, Account]] = {}
        self._lines: dict[str, Line] = {}
        self._odd: dict[Odd, dict[str, Oddity]] = {kind: {} for kind in Odd}
        self._odd_counts: Counter[tuple[str, Odd]] = Counter()
        self.changed: set[str] = set()
        self.watchers: tuple[ShareWatcher, ...] = ()

    @property
    def accounts(self) -> Mapping[str, Mapping[str, Account]]:
        """Return the accounts by tenant and pool."""
        return self._accounts

    @property
    def lines(self) -> Mapping[str, Line]:
        """Return the lines by tenant."""
        return self._lines

    @property
    def odd(self) -> Mapping[Odd, Mapping[str, Oddity]]:
        """Return what is odd by kind and UID."""
        return self._odd

    @property
    def odd_counts(self) -> Mapping[tuple[str, Odd], int]:
        """Return how many pods of a tenant are odd in one way."""
        return self._odd_counts

    def account(self, tenant: str, pool: str) -> Account | None:
        """Return an account, None where nothing is counted."""
        pools = self._accounts.get(tenant)
        return pools.get(pool) if pools else None

    def post(self, uid: str, old: Ruling, new: Ruling) -> None:
        """Count what a pod counts now in the place of what it counted."""
        if new.share != old.share:
            if old.share is not None:
                self._add(old.share, -1)
            if new.share is not None:
                self._add(new.share, 1)
            for watcher in self.watchers:
                watcher(uid, new.share)
        if new.line != old.line or new.since != old.since:
            self._line_up(uid, old, new)
        if new.oddities != old.oddities:
            for oddity in old.oddities:
                del self._odd[oddity.kind][uid]
                self._count_odd(oddity, -1)
            for oddity in new.oddities:
                self._odd[oddity.kind][uid] = oddity
                self._count_odd(oddity, 1)

    def strike(self, uid: str, old: Ruling) -> None:
        """Count no more what a pod has counted."""
        self.post(uid, old, COUNTS_NOTHING)

    def _add(self, share: Share, sign: int) -> None:
        tenant, pool, amount, leaving, fixed = share
        pools = self._accounts.get(tenant)
        if pools is None:
            pools = self._accounts[tenant] = {}
        account = pools.get(pool)
        if account is None:
            account = pools[pool] = Account()
        account.used.add(amount, sign)
        if leaving:
            account.leaving.add(amount, sign)
        if fixed:
            account.fixed.add(amount, sign)
        if sign < 0 and account.used.is_nothing:
            del pools[pool]
            if not pools:
                del self._accounts[tenant]
        self.changed.add(tenant)

    def _count_odd(self, oddity: Oddity, sign: int) -> None:
        key = oddity.tenant, oddity.kind
        self._odd_counts[key] += sign
        if not self._odd_counts[key]:
            del self._odd_counts[key]

    def _line_up(self, uid: str, old: Ruling, new: Ruling) -> None:
        if old.line is not None:
            line = self._lines[old.line]
            line.leave(uid)
            if not line:
                del self._lines[old.line]
            self.changed.add(old.line)
        if new.line is not None:
            self._lines.setdefault(new.line, Line()).join(uid, new.since)
            self.changed.add(new.line)
