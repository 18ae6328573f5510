# SPDX-License-Identifier: Apache-2.0
"""Who uses how much, kept up to date pod by pod; a pure function of the pods and intents put in.

A pod counts from when it has lost our gate, or from when an intent to release it was declared,
until it has ended or is gone. What may be released is not decided here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from policies.admission.charging import amount as as_text
from policies.model.tenant import Tenant
from policies.quota.account import Account
from policies.quota.amount import NOTHING, Amount, total
from policies.quota.charge import ChargeRecord
from policies.quota.charging import Unknown, cost
from policies.quota.oddities import Odd, Oddity, listed, of_pod, over_ceilings
from policies.quota.pods import Phase, QuotaPod, Shape
from policies.quota.waiting import Line, Waiting

NO_TENANT: Final = ""
"""Who pays for GPU pods in namespaces of no tenant, so that they are seen."""


class Prices(Protocol):
    """What pods cost by today's policies, and which pool their nodes are in."""

    @property
    def generation(self) -> str:
        """Return the generation of the policies."""
        ...

    def price_of(self, shape: Shape) -> Amount | Unknown:
        """Return what a pod of the shape costs wherever it goes."""
        ...

    def price(self, pod: QuotaPod) -> Amount | Unknown:
        """Return what a pod costs where it is."""
        ...

    def pool(self, pod: QuotaPod) -> str:
        """Return the pool of a pod's node."""
        ...


@dataclass(frozen=True, slots=True)
class _Share:
    """What a pod or an intent adds to the account of a tenant in a pool."""

    tenant: str
    pool: str
    amount: Amount
    leaving: bool = False
    fixed: bool = False


@dataclass(slots=True)
class _Entry:
    """What is known under a UID, and what that has added."""

    pod: QuotaPod | None = None
    intent: ChargeRecord | None = None
    share: _Share | None = None
    waits_for: str | None = None
    """The tenant in whose line it stands."""
    oddities: tuple[Oddity, ...] = ()


class Ledger:
    """Usage by tenant and pool. Times are Unix seconds.

    `resolve` tells the tenant that owns a namespace now, None if none does; its answers are kept
    until `resettle`. What a charged pod costs stands in its charge; `prices` tells it of others.
    """

    def __init__(self, resolve: Callable[[str], str | None], prices: Prices) -> None:
        self._resolve = resolve
        self._prices = prices
        self._owners: dict[str, str | None] = {}
        self._entries: dict[str, _Entry] = {}
        self._by_namespace: dict[str, dict[str, None]] = {}
        self._by_price: dict[str, dict[str, None]] = {}
        """Uncharged pods that count, by node."""
        self._ending: dict[str, None] = {}
        """Pods on nodes that are being deleted: they stop counting if their node is lost."""
        self._accounts: dict[str, dict[str, Account]] = {}
        self._lines: dict[str, Line] = {}
        self._odd: dict[Odd, dict[str, Oddity]] = {kind: {} for kind in Odd}
        self._now = 0
        self._lost: frozenset[str] = frozenset()
        self._changed: set[str] = set()

    # What has happened.

    def put(self, pod: QuotaPod) -> None:
        """Take a pod as it is now. One that neither takes GPUs nor has our gate counts nothing."""
        uid = pod.uid
        if not pod.holds_quota:
            if uid in self._entries:
                self.remove(uid)
            return
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._entries[uid] = _Entry()
        old, entry.pod = entry.pod, pod
        if old is None or old.namespace != pod.namespace:
            self._by_namespace.setdefault(pod.namespace, {})[uid] = None
        self._index(uid, old, pod)
        self._judge(uid, entry)

    def remove(self, uid: str) -> None:
        """Forget a pod that is gone, and an intent to release it, which can no longer land."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return
        self._settle_entry(uid, entry, None, None, ())
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
        self._judge(uid, entry)
        if entry.pod is None:
            del self._entries[uid]

    def expire(self, now: int, is_lost: Callable[[str], bool]) -> None:
        """Take the time, and ask which nodes are gone or have not been heard of for long.

        A pod there stops counting when its deletionTimestamp has passed, which includes its grace;
        it counts again if its node comes back first.
        """
        pods = (entry.pod for uid in self._ending if (entry := self._entries[uid]).pod)
        self._now = now
        self._lost = frozenset(node for node in {pod.node for pod in pods} if is_lost(node))
        self._again(self._ending)

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
        return tuple(sorted(self._accounts.keys() | self._lines.keys()))

    def pools(self, tenant: str) -> tuple[str, ...]:
        """Return the pools in which a tenant uses anything, in name order."""
        return tuple(sorted(self._accounts.get(tenant, ())))

    def used(self, tenant: str, pool: str) -> Amount:
        """Return what counts against a ceiling: everything that is not gone."""
        account = self._account(tenant, pool)
        return account.used.amount if account else NOTHING

    def used_total(self, tenant: str) -> Amount:
        """Return what counts against ceilings over all pools, such as those of memory."""
        return total(account.used.amount for account in self._accounts.get(tenant, {}).values())

    def entitled(self, tenant: str, pool: str) -> Amount:
        """Return what counts in fair shares and reclaim: all but what is being deleted."""
        account = self._account(tenant, pool)
        if account is None:
            return NOTHING
        used = account.used.amount
        return used if account.leaving.is_nothing else used.minus(account.leaving.amount)

    def fixed(self, tenant: str, pool: str) -> Amount:
        """Return what is never taken back and is not gone, which the guarantee must hold."""
        account = self._account(tenant, pool)
        return account.fixed.amount if account else NOTHING

    def waiting(self, tenant: str) -> Waiting:
        """Return how many pods wait for quota alone, without those that an intent lets go."""
        line = self._lines.get(tenant)
        return line.state if line else Waiting()

    def charged(self, uid: str) -> Amount:
        """Return what a pod, or the intent to release it, counts in the ceiling's ledger."""
        entry = self._entries.get(uid)
        return entry.share.amount if entry and entry.share else NOTHING

    def intents(self) -> Mapping[str, ChargeRecord]:
        """Return the intents that are not settled, by UID."""
        found = ((uid, entry.intent) for uid, entry in self._entries.items())
        return {uid: intent for uid, intent in found if intent is not None}

    def exceptions(self, tenants: Mapping[str, Tenant]) -> tuple[Oddity, ...]:
        """Return what is odd, kind by kind, always in one order; of each kind at most so many."""
        found = {kind: list(known.values()) for kind, known in self._odd.items()}
        for name in self._accounts:
            if (tenant := tenants.get(name)) is not None:
                used = {pool: self.used(name, pool) for pool in self._accounts[name]}
                found[Odd.OVER_CEILING] += over_ceilings(tenant, used)
        return tuple(oddity for kind in Odd for oddity in listed(found[kind]))

    def count_odd(self, kind: Odd) -> int:
        """Return how many pods are odd in one way."""
        return len(self._odd[kind])

    def take_changed(self) -> frozenset[str]:
        """Return the tenants whose usage or line has changed since this was last asked."""
        changed, self._changed = frozenset(self._changed), set()
        return changed

    # How.

    def _account(self, tenant: str, pool: str) -> Account | None:
        pools = self._accounts.get(tenant)
        return pools.get(pool) if pools else None

    def _again(self, uids: Iterable[str]) -> None:
        for uid in tuple(uids):
            self._judge(uid, self._entries[uid])

    def _index(self, uid: str, old: QuotaPod | None, new: QuotaPod | None) -> None:
        """Keep the pods that time or nodes can change in reach."""
        if new is not None and new.deleted_at is not None and new.node:
            self._ending[uid] = None
        elif self._ending:
            self._ending.pop(uid, None)
        was, now = _priced_on(old), _priced_on(new)
        if was != now:
            if was is not None:
                _drop(self._by_price, was, uid)
            if now is not None:
                self._by_price.setdefault(now, {})[uid] = None

    def _judge(self, uid: str, entry: _Entry) -> None:
        pod = entry.pod
        if pod is None:
            self._settle_entry(uid, entry, self._of_intent(entry), None, ())
        elif pod.phase is Phase.LIVE:
            self._settle_entry(uid, entry, *self._of_live(pod))
        elif pod.phase is Phase.ENDED:
            self._settle_entry(uid, entry, None, None, ())
        elif entry.intent is not None:
            self._settle_entry(uid, entry, self._of_intent(entry), None, ())
        else:
            line = (self.owner(pod.namespace) or NO_TENANT) if pod.is_waiting else None
            self._settle_entry(uid, entry, None, line, ())

    def _of_intent(self, entry: _Entry) -> _Share | None:
        charge, pod = entry.intent, entry.pod
        if charge is None:
            return None
        owner = self.owner(pod.namespace) if pod is not None else None
        leaving = pod is not None and pod.deleted_at is not None
        return _Share(owner or charge.tenant, charge.pool, charge.amount, leaving, _fixes(charge))

    def _of_live(self, pod: QuotaPod) -> tuple[_Share | None, None, tuple[Oddity, ...]]:
        owner, charge, ends = self.owner(pod.namespace), pod.charge, pod.deleted_at
        tenant = owner or (charge.tenant if charge else NO_TENANT)
        if ends is not None and ends <= self._now and pod.node in self._lost:
            message = f"its grace is over and node {pod.node} is lost, so it is not counted"
            return None, None, (of_pod(Odd.LOST_NODE, tenant, pod, message),)
        if charge is None:
            price = self._prices.price(pod)
            fixed = pod.shape.exclusive or pod.mirror
            share = _Share(tenant, self._prices.pool(pod), cost(price), ends is not None, fixed)
            return share, None, _of_uncharged(pod, owner, price)
        share = _Share(tenant, charge.pool, charge.amount, ends is not None, _fixes(charge))
        return share, None, tuple(self._of_charged(pod, charge, owner))

    def _of_charged(
        self, pod: QuotaPod, charge: ChargeRecord, owner: str | None
    ) -> Iterator[Oddity]:
        if owner is None:
            message = (
                f"namespace {pod.namespace} belongs to no tenant any more; "
                f"the pod is still counted for {charge.tenant}"
            )
            yield of_pod(Odd.TENANT_GONE, charge.tenant, pod, message)
        elif owner != charge.tenant:
            message = f"was charged to {charge.tenant}; its namespace now belongs to {owner}"
            yield of_pod(Odd.NAMESPACE_MOVED, owner, pod, message)
        if charge.generation != self._prices.generation:
            return
        price = self._prices.price_of(pod.shape)
        if isinstance(price, Unknown) or price is charge.amount:
            return
        was = charge.amount
        if price.parts != was.parts or price.counts != was.counts:
            message = f"was charged {as_text(was.milli)} and costs {as_text(price.milli)}"
            yield of_pod(Odd.CHARGE_DIFFERS, owner or charge.tenant, pod, message)

    def _settle_entry(
        self,
        uid: str,
        entry: _Entry,
        share: _Share | None,
        line: str | None,
        oddities: tuple[Oddity, ...],
    ) -> None:
        """Make an entry count this, in the place of what it has counted."""
        if share != entry.share:
            self._add(entry.share, -1)
            self._add(share, 1)
            entry.share = share
        if line != entry.waits_for:
            self._leave(uid, entry.waits_for)
        if line is not None and entry.pod is not None:
            self._join(uid, line, entry.pod.created_at)
        entry.waits_for = line
        if oddities != entry.oddities:
            for old in entry.oddities:
                self._odd[old.kind].pop(uid, None)
            for new in oddities:
                self._odd[new.kind][uid] = new
            entry.oddities = oddities

    def _add(self, share: _Share | None, sign: int) -> None:
        if share is None:
            return
        pools = self._accounts.setdefault(share.tenant, {})
        account = pools.get(share.pool)
        if account is None:
            account = pools[share.pool] = Account()
        account.used.add(share.amount, sign)
        if share.leaving:
            account.leaving.add(share.amount, sign)
        if share.fixed:
            account.fixed.add(share.amount, sign)
        if account.used.is_nothing:
            del pools[share.pool]
            if not pools:
                del self._accounts[share.tenant]
        self._changed.add(share.tenant)

    def _join(self, uid: str, tenant: str, since: int) -> None:
        if self._lines.setdefault(tenant, Line()).join(uid, since):
            self._changed.add(tenant)

    def _leave(self, uid: str, tenant: str | None) -> None:
        if tenant is None:
            return
        line = self._lines[tenant]
        line.leave(uid)
        if not line:
            del self._lines[tenant]
        self._changed.add(tenant)


def _of_uncharged(pod: QuotaPod, owner: str | None, price: Amount | Unknown) -> tuple[Oddity, ...]:
    tenant = owner or NO_TENANT
    if owner is None:
        message = f"has GPUs in namespace {pod.namespace}, which belongs to no tenant"
        first = of_pod(Odd.NO_TENANT, tenant, pod, message)
    else:
        first = of_pod(Odd.SKIPPED_GATE, tenant, pod, "has GPUs and never waited for quota")
    if not isinstance(price, Unknown):
        return (first,)
    most = as_text(price.at_most.milli)
    message = f"{price.reason}; it is counted as {most}"
    return (first, of_pod(Odd.UNKNOWN_CHARGE, tenant, pod, message))


def _fixes(charge: ChargeRecord) -> bool:
    return charge.exclusive or not charge.reclaimable


def _priced_on(pod: QuotaPod | None) -> str | None:
    """Return the node by which a pod is priced, None for one that is not priced by any."""
    is_priced = pod is not None and pod.phase is Phase.LIVE and pod.charge is None
    return pod.node if pod is not None and is_priced else None


def _drop(index: dict[str, dict[str, None]], key: str, uid: str) -> None:
    found = index.get(key)
    if found is not None:
        found.pop(uid, None)
        if not found:
            del index[key]
