# SPDX-License-Identifier: Apache-2.0
"""Who is counted for what, when, and what is reported as odd."""

from typing import Any, Final

import pytest

from policies.cluster.constraints import Constraints
from policies.cluster.fit import FitShape
from policies.model.tenant import Quota, Tenant
from policies.pod.view import ContainerKind
from policies.quota.amount import NOTHING, Amount
from policies.quota.charge import ChargeRecord
from policies.quota.charging import Unknown
from policies.quota.ledger import NO_TENANT, Ledger
from policies.quota.oddities import MOST_OF_A_KIND, Odd, Oddity
from policies.quota.pods import Ask, Phase, QuotaPod, Shape
from policies.quota.waiting import Line, Waiting
from tests.support.builders import GPU

ONE: Final = Amount({1: 1}, 80_000, {GPU: 1})
A_YEAR: Final = 365 * 24 * 3600
SHAPE: Final = Shape(
    FitShape((("pods", 1),), Constraints()),
    (Ask(ContainerKind.APP, {GPU: 1}, "whole"),),
    {GPU: 1},
    claimed=True,
)


class Prices:
    """Every pod costs the same."""

    def __init__(self, price: Amount | Unknown = ONE) -> None:
        self.current = price
        self.generation = "g1"
        self.node_pool = ""

    def price_of(self, shape: Shape) -> Amount | Unknown:
        return self.current

    def price(self, pod: QuotaPod) -> Amount | Unknown:
        return self.current

    def pool(self, pod: QuotaPod) -> str:
        return self.node_pool if pod.node else ""


def charge(tenant: str = "chat", **changes: Any) -> ChargeRecord:
    fields: dict[str, Any] = {"pool": "", "amount": ONE, "generation": "g1", "at": 5}
    return ChargeRecord(tenant, **(fields | changes))


def live(uid: str = "u", **changes: Any) -> QuotaPod:
    fields: dict[str, Any] = {
        "namespace": "chat-prod",
        "name": f"pod-{uid}",
        "uid": uid,
        "version": "1",
        "created_at": 100,
        "phase": Phase.LIVE,
        "shape": SHAPE,
        "charge": charge(),
        "node": "node-1",
    }
    return QuotaPod(**(fields | changes))


def waiting(uid: str = "u", **changes: Any) -> QuotaPod:
    return live(uid, **({"phase": Phase.WAITING, "charge": None, "node": ""} | changes))


OWNERS: Final = {"chat-prod": "chat", "vision-prod": "vision"}


def ledger_of(
    *pods: QuotaPod, owners: dict[str, str] | None = None, prices: Prices | None = None
) -> Ledger:
    ledger = Ledger((OWNERS if owners is None else owners).get, prices or Prices())
    for pod in pods:
        ledger.put(pod)
    return ledger


def kinds(ledger: Ledger, tenants: dict[str, Tenant] | None = None) -> list[Odd]:
    return [oddity.kind for oddity in ledger.exceptions(tenants or {})]


def test_a_live_pod_counts_what_it_was_charged_in_the_pool_it_was_charged_to() -> None:
    ledger = ledger_of(live(charge=charge(pool="h100")))

    assert ledger.used("chat", "h100") == ONE
    assert ledger.entitled("chat", "h100") == ONE
    assert ledger.used("chat", "") == NOTHING
    assert ledger.used_total("chat") == ONE
    assert ledger.pools("chat") == ("h100",)
    assert ledger.charged("u") == ONE
    assert not kinds(ledger)


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.HELD, Phase.ENDED])
def test_pods_with_our_gate_and_pods_that_have_ended_count_nothing(phase: Phase) -> None:
    ledger = ledger_of(live(), live(phase=phase))

    assert ledger.used("chat", "") == NOTHING
    assert ledger.waiting("chat").count == (phase is Phase.WAITING)


def test_a_pod_that_is_gone_counts_nothing_however_often_that_is_told() -> None:
    ledger = ledger_of(live("a"), live("b"))
    ledger.remove("a")
    ledger.remove("a")
    ledger.remove("never-seen")

    assert ledger.used("chat", "") == ONE


def test_a_pod_that_takes_a_year_to_end_counts_against_the_ceiling_and_not_the_entitlement() -> (
    None
):
    ledger = ledger_of(live(deleted_at=A_YEAR, charge=charge(exclusive=True)))
    ledger.expire(10, lambda _node: False)

    assert ledger.used("chat", "") == ONE
    assert ledger.entitled("chat", "") == NOTHING
    assert ledger.fixed("chat", "") == ONE


def test_a_deleted_pod_counts_on_a_lost_node_until_its_grace_is_over() -> None:
    ledger = ledger_of(live(deleted_at=50))

    ledger.expire(49, lambda _node: True)
    assert ledger.used("chat", "") == ONE
    ledger.expire(50, lambda _node: False)
    assert ledger.used("chat", "") == ONE
    ledger.expire(50, lambda _node: True)
    assert ledger.used("chat", "") == NOTHING
    assert kinds(ledger) == [Odd.LOST_NODE]
    ledger.expire(51, lambda _node: False)
    assert ledger.used("chat", "") == ONE
    assert not kinds(ledger)


def test_a_pod_that_is_to_live_counts_on_a_lost_node_for_ever() -> None:
    ledger = ledger_of(live())
    ledger.expire(10**9, lambda _node: True)

    assert ledger.used("chat", "") == ONE


def test_only_work_that_is_never_taken_back_is_fixed() -> None:
    ledger = ledger_of(
        live("a"),
        live("b", charge=charge(exclusive=True)),
        live("c", charge=charge(reclaimable=False)),
        live("d", charge=None, mirror=True),
    )

    assert ledger.used("chat", "").milli == 4000
    assert ledger.fixed("chat", "").milli == 3000


def test_pods_that_skipped_the_gate_count_by_their_nodes_and_are_reported() -> None:
    prices = Prices()
    prices.node_pool = "h100"
    ledger = ledger_of(live("old", charge=None), prices=prices)

    assert ledger.used("chat", "h100") == ONE
    assert kinds(ledger) == [Odd.SKIPPED_GATE]
    prices.node_pool, prices.current = "a10", Unknown("no label tells", ONE.times(2))
    ledger.reprice("node-2")
    assert ledger.used("chat", "h100") == ONE
    ledger.reprice("node-1")
    assert ledger.used("chat", "a10") == ONE.times(2)
    assert kinds(ledger) == [Odd.SKIPPED_GATE, Odd.UNKNOWN_CHARGE]
    assert "counted as 2 GPUs" in ledger.exceptions({})[1].message


def test_gpu_pods_of_no_tenant_are_seen() -> None:
    ledger = ledger_of(live(namespace="wild", charge=None))

    assert ledger.used(NO_TENANT, "") == ONE
    assert ledger.tenants() == (NO_TENANT,)
    assert kinds(ledger) == [Odd.NO_TENANT]


def test_a_namespace_that_moves_takes_its_pods_along() -> None:
    owners = dict(OWNERS)
    ledger = ledger_of(live("a"), waiting("b"), owners=owners)
    ledger.take_changed()

    owners["chat-prod"] = "vision"
    ledger.resettle("chat-prod")

    assert ledger.tenants() == ("vision",)
    assert ledger.used("vision", "") == ONE
    assert ledger.waiting("vision").count == 1
    assert ledger.take_changed() == {"chat", "vision"}
    assert kinds(ledger) == [Odd.NAMESPACE_MOVED]


def test_the_running_pods_of_a_deleted_tenant_go_on_counting_for_it() -> None:
    owners = dict(OWNERS)
    ledger = ledger_of(live(), owners=owners)
    owners.clear()
    ledger.resettle()

    assert ledger.used("chat", "") == ONE
    assert kinds(ledger) == [Odd.TENANT_GONE]


def test_an_intent_counts_once_with_the_pods_own_charge() -> None:
    ledger = ledger_of(waiting())
    ledger.charge_intent("u", charge(exclusive=True))

    assert ledger.used("chat", "") == ledger.fixed("chat", "") == ONE
    assert ledger.waiting("chat").count == 0
    ledger.put(live(charge=charge(exclusive=True)))
    assert ledger.used("chat", "") == ONE
    assert ledger.intents() == {"u": charge(exclusive=True)}
    ledger.settle("u")
    ledger.settle("u")
    assert ledger.used("chat", "") == ONE
    assert ledger.intents() == {}


def test_an_intent_that_came_to_nothing_gives_back_what_it_counted() -> None:
    ledger = ledger_of(waiting())
    ledger.charge_intent("u", charge())
    ledger.settle("u")

    assert ledger.used("chat", "") == NOTHING
    assert ledger.waiting("chat").count == 1


def test_an_inherited_intent_counts_before_its_pod_is_seen() -> None:
    ledger = ledger_of()
    ledger.charge_intent("u", charge("vision"))
    assert ledger.used("vision", "") == ONE

    ledger.put(waiting())

    assert ledger.used("vision", "") == NOTHING
    assert ledger.used("chat", "") == ONE
    ledger.remove("u")
    assert ledger.tenants() == ()
    assert ledger.intents() == {}


def test_an_intent_does_not_bring_back_a_pod_that_has_ended() -> None:
    ledger = ledger_of(waiting())
    ledger.charge_intent("u", charge())
    ledger.put(live(phase=Phase.ENDED))

    assert ledger.used("chat", "") == NOTHING


def test_a_charge_that_the_same_policies_would_not_give_is_reported() -> None:
    other = charge(amount=ONE.times(2))
    assert kinds(ledger_of(live(charge=other))) == [Odd.CHARGE_DIFFERS]
    message = ledger_of(live(charge=other)).exceptions({})[0].message
    assert message == "was charged 2 GPUs and costs 1 GPU"

    older = charge(amount=ONE.times(2), generation="g0")
    assert not kinds(ledger_of(live(charge=older)))
    elsewhere = charge(amount=Amount(ONE.parts, 1, ONE.counts))
    assert not kinds(ledger_of(live(charge=elsewhere)))


def test_what_is_over_a_ceiling_now_is_reported_by_kind_and_pool() -> None:
    tenant = Tenant(
        "chat", frozenset(), None,
        pools={"": Quota(0, 500), "h100": Quota(0, 1000)},
        memory_mib=100_000, resources={GPU: 1},
    )  # fmt: skip
    ledger = ledger_of(live("a"), live("b", charge=charge(pool="h100")))

    assert [oddity.message for oddity in ledger.exceptions({"chat": tenant})] == [
        "uses 1 GPU, which is more than its ceiling of 0.5 GPUs",
        "uses 160000 MiB of GPU memory, which is more than its ceiling of 100000 MiB",
        f"uses 2 of {GPU}, which is more than its ceiling of 1",
    ]


def test_oddities_are_listed_up_to_a_bound_always_the_same_and_all_counted() -> None:
    pods = [live(f"{number:03d}", charge=None) for number in range(MOST_OF_A_KIND + 50)]
    ledger, reverse = ledger_of(*pods), ledger_of(*reversed(pods))

    found = ledger.exceptions({})

    assert found == reverse.exceptions({})
    assert len(found) == MOST_OF_A_KIND
    assert isinstance(found[0], Oddity)
    assert found[0].name == "pod-000"
    assert ledger.count_odd(Odd.SKIPPED_GATE) == MOST_OF_A_KIND + 50


def test_only_what_has_changed_is_told_as_changed() -> None:
    ledger = ledger_of(live("a"), live("b", namespace="vision-prod", charge=charge("vision")))
    assert ledger.take_changed() == {"chat", "vision"}

    ledger.put(live("a", version="2", reason="other"))
    assert ledger.take_changed() == frozenset()
    ledger.put(live("a", deleted_at=9))
    assert ledger.take_changed() == {"chat"}


def test_pods_without_gpus_leave_no_trace() -> None:
    bare = Shape(SHAPE.fit)
    ledger = ledger_of(live(shape=bare, charge=None), live("w"))
    ledger.put(live("w", shape=bare))

    assert ledger.tenants() == ()
    assert not kinds(ledger)


def test_the_oldest_of_those_that_wait_is_known_after_any_have_left() -> None:
    line = Line()
    for number in range(200):
        line.join(f"u{number}", number)
        line.join(f"u{number}", number)
    for number in range(150):
        line.leave(f"u{number}")
    line.leave("u0")

    assert line.state == Waiting(50, 150)
    line.join("u0", 3)
    assert line.state == Waiting(51, 3)
    for number in range(200):
        line.leave(f"u{number}")
    assert line.state == Waiting(0, None)


def test_time_is_asked_of_nobody_whose_node_is_there() -> None:
    asked: list[str] = []

    class Counted(Prices):
        def price(self, pod: QuotaPod) -> Amount | Unknown:
            asked.append(pod.uid)
            return ONE

    ledger = Ledger(lambda _namespace: "chat", Counted())
    for number in range(20):
        ledger.put(live(str(number), node=f"n{number % 4}", deleted_at=50, charge=None))
    asked.clear()

    ledger.expire(60, lambda _node: False)
    assert asked == []
    ledger.expire(60, lambda node: node == "n1")
    assert ledger.used("chat", "") == ONE.times(15)
    ledger.expire(61, lambda _node: False)
    assert set(asked) == {"1", "5", "9", "13", "17"}
    assert ledger.used("chat", "") == ONE.times(20)
