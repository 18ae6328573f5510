# SPDX-License-Identifier: Apache-2.0
"""What one pod, or the intent to release it, counts for whom, and what is odd about that.

Rules only: sums are kept by policies.quota.books.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from policies.admission.charging import amount as as_text
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from policies.quota.charging import Unknown, cost
from policies.quota.oddities import Odd, Oddity, of_pod
from policies.quota.pods import Phase, QuotaPod, Shape

NO_TENANT: Final = ""
"""Who pays for GPU pods in namespaces of no tenant, so that they are seen."""


_MOST_RULINGS: Final = 8192
"""Rulings that are remembered, so that those of past pods do not pile up."""


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


class Share(NamedTuple):
    """What counts for a tenant in a pool.

    What is `leaving` is being deleted; what is `fixed` is never taken back.
    """

    tenant: str
    pool: str
    amount: Amount
    leaving: bool = False
    fixed: bool = False


class Ruling(NamedTuple):
    """What a pod counts, the tenant in whose line it waits and since when, what is odd about it."""

    share: Share | None = None
    line: str | None = None
    since: int = 0
    oddities: tuple[Oddity, ...] = ()


COUNTS_NOTHING: Final = Ruling()


class Rules:
    """The rules at a time. A deleted pod whose grace is over counts no more on a lost node."""

    def __init__(self, owner: Callable[[str], str | None], prices: Prices) -> None:
        self._owner = owner
        self._prices = prices
        self._rulings: dict[tuple[str, str, int, bool, bool], Ruling] = {}
        self.now = 0
        self.lost: frozenset[str] = frozenset()

    def of(self, pod: QuotaPod | None, intent: ChargeRecord | None) -> Ruling:
        """Return what counts. A pod without our gate counts itself, and its intent no longer."""
        if pod is not None:
            if pod.phase is Phase.ENDED:
                return COUNTS_NOTHING
            if pod.phase is Phase.LIVE:
                return self._live(pod) if pod.shape.gpus else COUNTS_NOTHING
        if intent is not None:
            return self._intended(pod, intent)
        if pod is None or not pod.is_waiting:
            return COUNTS_NOTHING
        return Ruling(line=self._owner(pod.namespace) or NO_TENANT, since=pod.created_at)

    def _intended(self, pod: QuotaPod | None, intent: ChargeRecord) -> Ruling:
        owner = self._owner(pod.namespace) if pod is not None else None
        leaving = pod is not None and pod.deleted_at is not None
        return self._usual(owner or intent.tenant, intent, leaving)

    def _live(self, pod: QuotaPod) -> Ruling:
        owner, charge, ends = self._owner(pod.namespace), pod.charge, pod.deleted_at
        tenant = owner or (charge.tenant if charge is not None else NO_TENANT)
        if ends is not None and ends <= self.now and pod.node in self.lost:
            message = f"its grace is over and node {pod.node} is lost, so it is not counted"
            return Ruling(oddities=(of_pod(Odd.LOST_NODE, tenant, pod, message),))
        leaving = ends is not None
        if charge is not None:
            usual = self._usual(tenant, charge, leaving)
            if owner == charge.tenant and self._is_as_charged(pod, charge):
                return usual
            return usual._replace(oddities=tuple(self._of_charged(pod, charge, owner)))
        price = self._prices.price(pod)
        fixed = pod.shape.exclusive or pod.mirror
        share = Share(tenant, self._prices.pool(pod), cost(price), leaving, fixed)
        return Ruling(share, oddities=_of_uncharged(pod, owner, price))

    def _usual(self, tenant: str, charge: ChargeRecord, leaving: bool) -> Ruling:
        """Return the ruling on a charged pod; the same object for most of those that are alike."""
        amount, fixed = charge.amount, charge.exclusive or not charge.reclaimable
        key = (tenant, charge.pool, id(amount), leaving, fixed)
        ruling = self._rulings.get(key)
        if ruling is None:
            if len(self._rulings) >= _MOST_RULINGS:
                self._rulings.clear()
            # The ruling keeps the amount, so that no other one can get its id meanwhile.
            ruling = Ruling(Share(tenant, charge.pool, amount, leaving, fixed))
            self._rulings[key] = ruling
        return ruling

    def _is_as_charged(self, pod: QuotaPod, charge: ChargeRecord) -> bool:
        """Tell whether it costs what it was charged by these very policies, memory aside.

        Memory is charged by the nodes that there were.
        """
        if charge.generation != self._prices.generation:
            return True
        price, was = self._prices.price_of(pod.shape), charge.amount
        return (
            price is was
            or isinstance(price, Unknown)
            or (price.parts == was.parts and price.counts == was.counts)
        )

    def _of_charged(
        self, pod: QuotaPod, charge: ChargeRecord, owner: str | None
    ) -> Iterator[Oddity]:
        tenant = owner or charge.tenant
        if owner is None:
            message = (
                f"namespace {pod.namespace} belongs to no tenant any more; "
                f"the pod is still counted for {charge.tenant}"
            )
            yield of_pod(Odd.TENANT_GONE, tenant, pod, message)
        elif owner != charge.tenant:
            message = f"was charged to {charge.tenant}; its namespace now belongs to {owner}"
            yield of_pod(Odd.NAMESPACE_MOVED, tenant, pod, message)
        if not self._is_as_charged(pod, charge):
            price, was = cost(self._prices.price_of(pod.shape)), charge.amount
            message = f"was charged {as_text(was.milli)} and costs {as_text(price.milli)}"
            yield of_pod(Odd.CHARGE_DIFFERS, tenant, pod, message)


def _of_uncharged(pod: QuotaPod, owner: str | None, price: Amount | Unknown) -> tuple[Oddity, ...]:
    tenant = owner or NO_TENANT
    if owner is None:
        message = f"has GPUs in namespace {pod.namespace}, which belongs to no tenant"
        first = of_pod(Odd.NO_TENANT, tenant, pod, message)
    else:
        first = of_pod(Odd.SKIPPED_GATE, tenant, pod, "has GPUs and was never charged for them")
    if not isinstance(price, Unknown):
        return (first,)
    message = f"{price.reason}; it is counted as {as_text(price.at_most.milli)}"
    return (first, of_pod(Odd.UNKNOWN_CHARGE, tenant, pod, message))
