# SPDX-License-Identifier: Apache-2.0
"""After any order of events the ledger says what a sum over the pods that are there says."""

from collections import Counter
from fractions import Fraction
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from policies.cluster.constraints import Constraints
from policies.cluster.fit import FitShape
from policies.pod.view import ContainerKind
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from policies.quota.charging import Unknown
from policies.quota.ledger import NO_TENANT, Ledger
from policies.quota.oddities import Odd
from policies.quota.pods import Ask, Phase, QuotaPod, Shape

pytestmark = pytest.mark.timeout(300)
"""A deep look takes its time."""

NAMESPACES: Final = ("a1", "a2", "b1", "wild")
TENANTS: Final = ("a", "b", None)
NODES: Final = ("n1", "n2", "lost")
POOLS: Final = ("", "h100")
SHARED: Final = "nvidia.com/gpu.shared"


def _shape(count: int) -> Shape:
    gpus = {SHARED: count} if count else {}
    asks = (Ask(ContainerKind.APP, gpus, "slice"),) if count else ()
    fit = FitShape((("pods", 1),), Constraints())
    return Shape(fit, asks, gpus, claimed=True, exclusive=count == 2)


SHAPES: Final = tuple(map(_shape, range(4)))
amounts: Final = st.builds(
    Amount,
    st.dictionaries(st.sampled_from([1, 3, 4]), st.integers(1, 3), max_size=2),
    st.integers(0, 3),
    st.dictionaries(st.just(SHARED), st.integers(1, 3), max_size=1),
)
charges: Final = st.builds(
    ChargeRecord,
    tenant=st.sampled_from(["a", "b", "gone"]),
    pool=st.sampled_from(POOLS),
    amount=amounts,
    generation=st.sampled_from(["g1", "g2"]),
    at=st.integers(0, 9),
    exclusive=st.booleans(),
    reclaimable=st.booleans(),
)
uids: Final = st.sampled_from([f"u{index}" for index in range(8)])


@st.composite
def seen_pods(draw: st.DrawFn) -> QuotaPod:
    """Return a pod as its watch may show it at some time; its namespace and age never change."""
    index = draw(st.integers(0, 7))
    return QuotaPod(
        namespace=NAMESPACES[index % 4],
        name=f"p{index}",
        uid=f"u{index}",
        version="1",
        created_at=index * 3 % 5,
        phase=draw(st.sampled_from([*Phase, Phase.LIVE, Phase.LIVE])),
        shape=draw(st.sampled_from(SHAPES)),
        node=draw(st.sampled_from(["", *NODES])),
        deleted_at=draw(st.none() | st.integers(0, 20)),
        charge=draw(st.none() | charges),
        mirror=draw(st.booleans()),
    )


class Prices:
    """Prices that the test can change: so many thirds of a GPU for each device."""

    def __init__(self) -> None:
        self.numerator = 1
        self.generation = "g1"
        self.is_known = True

    def price_of(self, shape: Shape) -> Amount | Unknown:
        count = self.numerator * sum(shape.gpus.values())
        amount = Amount({3: count}, count, shape.gpus) if count else Amount()
        return amount if self.is_known else Unknown("no label tells", amount)

    def price(self, pod: QuotaPod) -> Amount | Unknown:
        return self.price_of(pod.shape)

    def pool(self, pod: QuotaPod) -> str:
        return "h100" if pod.node == "n1" else ""


def _plain(amount: Amount) -> Counter[object]:
    """Return an amount without its structure."""
    plain: Counter[object] = Counter({"mib": amount.mib})
    plain.update(amount.parts)
    plain.update(amount.counts)
    return +plain


class Sums:
    """Usage added up from nothing, as the rules word it."""

    def __init__(self, machine: "Ledgers") -> None:
        self.used: dict[tuple[str, str], Counter[object]] = {}
        self.entitled: dict[tuple[str, str], Counter[object]] = {}
        self.fixed: dict[tuple[str, str], Counter[object]] = {}
        self.waiting: dict[str, list[int]] = {}
        for uid in machine.pods.keys() | machine.intents.keys():
            self._count(machine, machine.pods.get(uid), machine.intents.get(uid))

    def _count(self, machine: "Ledgers", pod: QuotaPod | None, intent: ChargeRecord | None) -> None:
        owner = machine.owners[pod.namespace] if pod else None
        ends = pod.deleted_at if pod else None
        is_gated = pod is None or pod.phase in (Phase.WAITING, Phase.HELD)
        if pod is not None and pod.phase is Phase.ENDED:
            return
        if is_gated and intent is not None:
            self._add(owner, intent, ends)
        elif is_gated:
            if pod is not None and pod.phase is Phase.WAITING and ends is None:
                self.waiting.setdefault(owner or NO_TENANT, []).append(pod.created_at)
        elif pod is not None and pod.shape.gpus:
            if ends is not None and ends <= machine.now and pod.node in machine.lost:
                return
            charge = pod.charge
            if charge is None:
                price = machine.prices.price(pod)
                amount = price.at_most if isinstance(price, Unknown) else price
                pool = machine.prices.pool(pod)
                keeps = pod.shape.exclusive or pod.mirror
                charge = ChargeRecord(NO_TENANT, pool, amount, "", 0, reclaimable=not keeps)
            self._add(owner, charge, ends)

    def _add(self, owner: str | None, charge: ChargeRecord, ends: int | None) -> None:
        account = (owner or charge.tenant, charge.pool)
        amount = _plain(charge.amount)
        kinds = [self.used]
        kinds += [self.entitled] if ends is None else []
        kinds += [self.fixed] if charge.exclusive or not charge.reclaimable else []
        for kind in kinds:
            kind.setdefault(account, Counter()).update(amount)


class Ledgers(RuleBasedStateMachine):
    """Feeds one ledger with events, and compares it with sums over what is there."""

    def __init__(self) -> None:
        super().__init__()
        self.prices = Prices()
        self.owners: dict[str, str | None] = {"a1": "a", "a2": "a", "b1": "b", "wild": None}
        self.ledger = Ledger(self.owners.__getitem__, self.prices)
        self.pods: dict[str, QuotaPod] = {}
        self.intents: dict[str, ChargeRecord] = {}
        self.now = 0
        self.lost: frozenset[str] = frozenset()

    @rule(pod=seen_pods())
    def put(self, pod: QuotaPod) -> None:
        self.pods[pod.uid] = pod
        self.ledger.put(pod)
        self.expire(self.now, self.lost)

    @rule(uid=uids)
    def remove(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.intents.pop(uid, None)
        self.ledger.remove(uid)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def put_again(self, data: st.DataObject) -> None:
        self.ledger.put(self.pods[data.draw(st.sampled_from(sorted(self.pods)))])

    @rule(uid=uids, charge=charges)
    def declare(self, uid: str, charge: ChargeRecord) -> None:
        pod = self.pods.get(uid)
        if pod is not None and not pod.holds_quota:
            return  # nobody means to charge it, and the ledger does not know it
        self.intents[uid] = charge
        self.ledger.charge_intent(uid, charge)

    @rule(uid=uids)
    def settle(self, uid: str) -> None:
        self.intents.pop(uid, None)
        self.ledger.settle(uid)

    @rule(namespace=st.sampled_from(NAMESPACES), tenant=st.sampled_from(TENANTS))
    def move(self, namespace: str, tenant: str | None) -> None:
        self.owners[namespace] = tenant
        self.ledger.resettle(namespace)

    @rule(
        numerator=st.integers(1, 4), generation=st.sampled_from(["g1", "g2"]), known=st.booleans()
    )
    def change_prices(self, numerator: int, generation: str, known: bool) -> None:
        self.prices.numerator, self.prices.generation = numerator, generation
        self.prices.is_known = known
        self.ledger.resettle()

    @rule(now=st.integers(0, 20), lost=st.frozensets(st.sampled_from(NODES)))
    def expire(self, now: int, lost: frozenset[str]) -> None:
        self.now, self.lost = now, lost
        self.ledger.expire(now, lost.__contains__)

    @invariant()
    def agrees_with_sums_over_what_is_there(self) -> None:
        self._agrees(self.ledger)

    def teardown(self) -> None:
        """Check that a replay in another order says the same."""
        replayed = Ledger(self.owners.__getitem__, self.prices)
        replayed.expire(self.now, self.lost.__contains__)
        for uid, intent in sorted(self.intents.items(), reverse=True):
            replayed.charge_intent(uid, intent)
        for pod in sorted(self.pods.values(), key=lambda pod: pod.uid):
            replayed.put(pod)
        replayed.expire(self.now, self.lost.__contains__)
        self._agrees(replayed)
        assert replayed.exceptions({}) == self.ledger.exceptions({})
        assert replayed.intents() == self.ledger.intents() == self.intents

    def _agrees(self, ledger: Ledger) -> None:
        sums = Sums(self)
        tenants = {tenant for tenant, _ in sums.used} | set(sums.waiting)
        for tenant in ("a", "b", "gone", NO_TENANT):
            for pool in POOLS:
                account = (tenant, pool)
                for read, expected in (
                    (ledger.used, sums.used),
                    (ledger.entitled, sums.entitled),
                    (ledger.fixed, sums.fixed),
                ):
                    found = read(tenant, pool)
                    assert _plain(found) == +expected.get(account, Counter()), (read, account)
                    assert 0 not in (*found.parts.values(), *found.counts.values())
            since = sums.waiting.get(tenant, [])
            state = ledger.waiting(tenant)
            assert (state.count, state.oldest_at) == (len(since), min(since, default=None))
            totals = sum((sums.used.get((tenant, pool), Counter()) for pool in POOLS), Counter())
            assert _plain(ledger.used_total(tenant)) == totals
        assert set(ledger.tenants()) <= tenants

    @invariant()
    def what_is_charged_is_the_sum_over_the_live_pods(self) -> None:
        exact = sum(
            Fraction(count, size)
            for uid in self.pods.keys() | self.intents.keys()
            for size, count in self.ledger.charged(uid).parts.items()
        )
        booked = sum(
            Fraction(count, size)
            for tenant in self.ledger.tenants()
            for pool in self.ledger.pools(tenant)
            for size, count in self.ledger.used(tenant, pool).parts.items()
        )
        assert exact == booked

    @invariant()
    def oddities_are_of_pods_that_are_there(self) -> None:
        found = self.ledger.exceptions({})
        assert {oddity.uid for oddity in found} <= self.pods.keys()
        for kind in Odd:
            assert self.ledger.count_odd(kind) == sum(oddity.kind is kind for oddity in found)


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(stateful_step_count=30)


@given(st.integers(1, 64), st.integers(1, 4))
def test_the_shares_of_a_gpu_never_cost_a_tenant_more_than_the_gpu(size: int, gpus: int) -> None:
    ledger = Ledger(lambda _namespace: "a", Prices())
    one = ChargeRecord("a", "", Amount({size: 1}, 1, {SHARED: 1}), "g1", 0)
    for index in range(size * gpus):
        ledger.put(
            QuotaPod("a1", f"p{index}", f"u{index}", "1", 0, Phase.LIVE, SHAPES[1], charge=one)
        )
    assert ledger.used("a", "").milli == 1000 * gpus
