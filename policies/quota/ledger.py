# SPDX-License-Identifier: Apache-2.0
"""Who uses how much, kept up to date pod by pod; a pure function of the pods and intents put in.

A pod counts from when it has lost our gate, or from when an intent to release it was declared,
until it has ended or is gone. What may be released is not decided here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from policies.model.tenant import Tenant
from policies.quota.amount import NOTHING, Amount, total
from policies.quota.books import Books, ShareWatcher
from policies.quota.charge import ChargeRecord
from policies.quota.counting import COUNTS_NOTHING, NO_TENANT, Prices, Rules, Ruling, Share
from policies.quota.oddities import Odd, Oddity, listed, over_ceilings
from policies.quota.pods import Phase, QuotaPod
from policies.quota.waiting import Waiting

__all__ = ["NO_TENANT", "Ledger", "Prices"]

Index = dict[str, dict[str, None]]
"""Sets of UIDs by a name, in the order in which they came."""


class _Entry:
    """What is known under a UID, and what that counts."""

    __slots__ = ("intent", "pod", "ruling")

    def __init__(self) -> None:
        self.pod: QuotaPod | None = None
        self.intent: ChargeRecord | None = None
        self.ruling: Ruling = COUNTS_NOTHING


class Ledger:
    """Usage by tenant and pool. Times are Unix seconds.

    `resolve` tells the tenant that owns a namespace now, None if none does; its answers are kept
    until `resettle`. What a charged pod costs stands in its charge; `prices` tells it of others.
    """

    def __init__(self, resolve: Callable[[str], str | None], prices: Prices) -> None:
        self._resolve = resolve
        self._owners: dict[str, str | None] = {}
        self._rules = Rules(self.owner, prices)
        self._books = Books()
        self._entries: dict[str, _Entry] = {}
        self._by_namespace: Index = {}
        self._by_price: Index = {}
        """Uncharged pods that count, by node."""
        self._ending: Index = {}
        """Pods that are being deleted, by node: they stop counting if it is lost."""

    # What has happened.

    def put(self, pod: QuotaPod) -> None:
        """Take a pod as it is now. One that neither takes GPUs nor has our gate counts nothing."""
        uid = pod.uid
        entry = self._entries.get(uid)
        if not pod.holds_quota and (entry is None or entry.intent is None):
            if entry is not None:
                self.remove(uid)
            return
        if entry is None:
            entry = self._entries[uid] = _Entry()
        old, entry.pod = entry.pod, pod
        if old is None:
            _put(self._by_namespace, pod.namespace, uid)
        self._index(uid, old, pod)
        self._judge(uid, entry)

    def remove(self, uid: str) -> None:
        """Forget a pod that is gone, and an intent to release it, which can no longer land."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return
        self._books.strike(uid, entry.ruling)
        if entry.pod is not None:
            self._index(uid, entry.pod, None)
            _drop(self._by_namespace, entry.pod.namespace, uid)

    def charge_intent(self, uid: str, charge: ChargeRecord) -> None:
        """Count a pod as charged from now on, since it may be released at any moment.

        Once it is seen without its gate, its own charge counts in place of this one.
        """
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._entries[uid] = _Entry()
        entry.intent = charge
        self._judge(uid, entry)

    def settle(self, uid: str) -> None:
        """Forget an intent: what became of it shows in the pod as it was put in."""
        entry = self._entries.get(uid)
        if entry is None or entry.intent is None:
            return
        entry.intent = None
        if entry.pod is None or not entry.pod.holds_quota:
            self.remove(uid)
        else:
            self._judge(uid, entry)

    def expire(self, now: int, is_lost: Callable[[str], bool]) -> None:
        """Take the time, and ask which nodes are gone or have not been heard of for long.

        A pod there stops counting when its deletionTimestamp has passed, which includes its grace;
        it counts again if its node comes back first.
        """
        before, rules = self._rules.lost, self._rules
        rules.now = now
        rules.lost = frozenset(node for node in self._ending if is_lost(node))
        # On all other nodes time changes nothing, and namespaces full of pods may be ending.
        for node in before | rules.lost:
            self._again(self._ending.get(node, ()))

    def resettle(self, namespace: str | None = None) -> None:
        """Ask again who owns a namespace, or without one, all of them, and what pods cost."""
        if namespace is None:
            self._owners.clear()
            self._again(self._entries)
        else:
            self._owners.pop(namespace, None)
            self._again(self._by_namespace.get(namespace, ()))

    def reprice(self, node: str) -> None:
        """Ask again what the uncharged pods of a node cost, and for its pool."""
        self._again(self._by_price.get(node, ()))

    # What follows from it.

    def owner(self, namespace: str) -> str | None:
        """Return the tenant that owns a namespace."""
        try:
            return self._owners[namespace]
        except KeyError:
            owner = self._owners[namespace] = self._resolve(namespace)
            return owner

    def tenants(self) -> tuple[str, ...]:
        """Return who uses or waits for anything, in name order; `NO_TENANT` among them."""
        return tuple(sorted(self._books.accounts.keys() | self._books.lines.keys()))

    def pools(self, tenant: str) -> tuple[str, ...]:
        """Return the pools in which a tenant uses anything, in name order."""
        return tuple(sorted(self._books.accounts.get(tenant, ())))

    def used(self, tenant: str, pool: str) -> Amount:
        """Return what counts against a ceiling: everything that is not gone."""
        account = self._books.account(tenant, pool)
        return account.used.amount if account else NOTHING

    def used_total(self, tenant: str) -> Amount:
        """Return what counts against ceilings over all pools, such as those of memory."""
        accounts = self._books.accounts.get(tenant, {})
        return total(account.used.amount for account in accounts.values())

    def entitled(self, tenant: str, pool: str) -> Amount:
        """Return what counts in fair shares and reclaim: all but what is being deleted."""
        account = self._books.account(tenant, pool)
        if account is None:
            return NOTHING
        used = account.used.amount
        return used if account.leaving.is_nothing else used.minus(account.leaving.amount)

    def fixed(self, tenant: str, pool: str) -> Amount:
        """Return what is never taken back and is not gone, which the guarantee must hold."""
        account = self._books.account(tenant, pool)
        return account.fixed.amount if account else NOTHING

    def waiting(self, tenant: str) -> Waiting:
        """Return how many pods wait for quota alone, without those that an intent lets go."""
        line = self._books.lines.get(tenant)
        return line.state if line else Waiting()

    def charged(self, uid: str) -> Amount:
        """Return what a pod, or the intent to release it, counts in the ceiling's ledger."""
        entry = self._entries.get(uid)
        share = entry.ruling.share if entry else None
        return share.amount if share else NOTHING

    def intents(self) -> Mapping[str, ChargeRecord]:
        """Return the intents that are not settled, by UID."""
        found = ((uid, entry.intent) for uid, entry in self._entries.items())
        return {uid: intent for uid, intent in found if intent is not None}

    def exceptions(self, tenants: Mapping[str, Tenant]) -> tuple[Oddity, ...]:
        """Return what is odd, kind by kind, always in one order; of each kind at most so many."""
        found = {kind: list(known.values()) for kind, known in self._books.odd.items()}
        for name, accounts in self._books.accounts.items():
            if (tenant := tenants.get(name)) is not None:
                used = {pool: account.used.amount for pool, account in accounts.items()}
                found[Odd.OVER_CEILING] += over_ceilings(tenant, used)
        return tuple(oddity for kind in Odd for oddity in listed(found[kind]))

    def count_odd(self, kind: Odd) -> int:
        """Return how many pods are odd in one way."""
        return len(self._books.odd[kind])

    def odd_counts(self) -> Mapping[tuple[str, Odd], int]:
        """Return how many pods of each tenant are odd in each way; what is left out is none."""
        return self._books.odd_counts

    def shares(self) -> Iterator[tuple[str, Share]]:
        """Yield what counts under each UID."""
        for uid, entry in self._entries.items():
            if entry.ruling.share is not None:
                yield uid, entry.ruling.share

    def watch(self, watcher: ShareWatcher) -> None:
        """Have a watcher told whenever something else counts under a UID."""
        self._books.watchers = (*self._books.watchers, watcher)

    def take_changed(self) -> frozenset[str]:
        """Return the tenants whose usage or line has changed since this was last asked."""
        changed, self._books.changed = frozenset(self._books.changed), set()
        return changed

    # How.

    def _judge(self, uid: str, entry: _Entry) -> None:
        old, new = entry.ruling, self._rules.of(entry.pod, entry.intent)
        if new is not old:
            self._books.post(uid, old, new)
            entry.ruling = new

    def _again(self, uids: Iterable[str]) -> None:
        for uid in tuple(uids):
            self._judge(uid, self._entries[uid])

    def _index(self, uid: str, old: QuotaPod | None, new: QuotaPod | None) -> None:
        """Keep the pods in reach that time or nodes can change."""
        _move(self._ending, uid, _ending_on(old), _ending_on(new))
        _move(self._by_price, uid, _priced_on(old), _priced_on(new))


def _ending_on(pod: QuotaPod | None) -> str | None:
    """Return the node on which a pod is being deleted, None for one that is not."""
    return pod.node if pod is not None and pod.deleted_at is not None and pod.node else None


def _move(index: Index, uid: str, old: str | None, new: str | None) -> None:
    if old != new:
        if old is not None:
            _drop(index, old, uid)
        if new is not None:
            _put(index, new, uid)


def _priced_on(pod: QuotaPod | None) -> str | None:
    """Return the node by which a pod is priced, None for one that is not priced by any."""
    if pod is None or pod.charge is not None or pod.phase is not Phase.LIVE:
        return None
    return pod.node


def _put(index: Index, key: str, uid: str) -> None:
    found = index.get(key)
    if found is None:
        found = index[key] = {}
    found[uid] = None


def _drop(index: Index, key: str, uid: str) -> None:
    found = index[key]
    del found[uid]
    if not found:
        del index[key]
