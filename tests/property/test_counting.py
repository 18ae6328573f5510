# SPDX-License-Identifier: Apache-2.0
"""Amounts, effective requests and charges, beside naive versions of the rules."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from policies.admission.charging import gpus
from policies.model.profile import Charge
from policies.model.quantity import QuantityError, parse_mib, parse_quantity
from policies.pod.asked import effective_counts
from policies.pod.effective import effective
from policies.pod.view import ContainerKind
from tests.support.builders import GPU, container, mutate, pod
from tests.support.pods import containers_of
from tests.support.strategies import bad_amounts, pods, spellings

AMOUNTS = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 5), max_size=2)
INITS = st.tuples(st.sampled_from([ContainerKind.INIT, ContainerKind.SIDECAR]), AMOUNTS)
APPS = st.tuples(st.just(ContainerKind.APP), AMOUNTS)


def _naive(
    inits: list[tuple[ContainerKind, dict[str, int]]],
    apps: list[tuple[ContainerKind, dict[str, int]]],
) -> dict[str, int]:
    """Kubernetes' rule, one resource at a time, as its documentation words it."""
    found = {}
    for name in ("a", "b"):
        sidecars = [
            amounts.get(name, 0) if kind is ContainerKind.SIDECAR else 0 for kind, amounts in inits
        ]
        running = sum(amounts.get(name, 0) for _, amounts in apps) + sum(sidecars)
        starting = [
            amounts.get(name, 0) + sum(sidecars[:index]) for index, (_, amounts) in enumerate(inits)
        ]
        found[name] = max([running, *starting])
    return {name: count for name, count in found.items() if count}


@given(st.lists(INITS, max_size=4), st.lists(APPS, max_size=3))
def test_the_effective_request_is_kubernetes_own(
    inits: list[tuple[ContainerKind, dict[str, int]]],
    apps: list[tuple[ContainerKind, dict[str, int]]],
) -> None:
    expected = _naive(inits, apps)

    assert effective([*inits, *apps]) == expected
    assert effective_counts([*inits, *apps]) == expected


@given(st.integers(1, 8), st.integers(1, 1000), st.integers(1, 64))
def test_as_many_shares_as_a_gpu_has_never_cost_more_than_the_gpu(
    part: int, parts: int, boards: int
) -> None:
    assume(part <= parts)
    charge = Charge(part, parts)

    assert charge.milli(parts // part * boards) <= 1000 * boards
    assert charge.milli(parts * boards) == 1000 * part * boards


@given(st.integers(1, 8), st.integers(1, 1000), st.integers(0, 64), st.integers(0, 64))
def test_charges_are_rounded_up_once_and_grow_with_the_units(
    part: int, parts: int, units: int, more: int
) -> None:
    charge = Charge(part, parts)
    exact = Fraction(1000 * part * units, parts)

    assert exact <= charge.milli(units) < exact + 1
    assert charge.milli(units) <= charge.milli(units + more)
    assert charge.milli(units + more) <= charge.milli(units) + charge.milli(more)


@given(pods())
def test_a_pod_is_charged_for_what_it_is_given(found: dict[str, object]) -> None:
    decision = mutate(found)
    if not decision.given or not decision.allowed:
        assert decision.charge_milli in (None, 0) or not decision.allowed
        return
    containers = len(list(containers_of(found)))

    assert decision.charge_milli is not None
    assert 0 < decision.charge_milli <= 1000 * sum(decision.given.values())
    assert sum(decision.given.values()) <= sum(decision.asked.values()) <= 2 * containers


@given(st.integers(0, 10**6).flatmap(lambda n: st.tuples(st.just(n), spellings(n))))
def test_every_spelling_of_a_whole_number_is_that_number(pair: tuple[int, object]) -> None:
    count, written = pair

    assert parse_quantity(written) == count


@given(st.integers(1, 3).flatmap(lambda n: st.tuples(st.just(n), spellings(n), spellings(n))))
def test_the_spelling_changes_no_decision(pair: tuple[int, object, object]) -> None:
    count, limit, request = pair
    asking = container(resources={"limits": {GPU: limit}, "requests": {GPU: request}})
    plain = mutate(pod(container(gpus=str(count))))
    decision = mutate(pod(asking))

    assert (decision.verdict, decision.given) == (plain.verdict, plain.given)
    assert decision.violations == plain.violations


@given(bad_amounts)
def test_no_odd_amount_is_ever_given(amount: object) -> None:
    decision = mutate(pod(container(gpus=amount)))

    assert not decision.allowed
    assert decision.charge_milli in (None, 0)


DIGITS = st.text("0123456789", min_size=1, max_size=12)
SUFFIXES: dict[str, Fraction | int] = {
    "": 1,
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}


@given(st.sampled_from(["", "+", "-"]), DIGITS, DIGITS | st.none(), st.sampled_from([*SUFFIXES]))
def test_a_quantity_is_its_number_times_its_suffix(
    sign: str, whole: str, part: str | None, suffix: str
) -> None:
    number = f"{sign}{whole}" + ("" if part is None else f".{part}")
    expected = Fraction(Decimal(number)) * Fraction(SUFFIXES[suffix])

    assert parse_quantity(f"{number}{suffix}") == expected
    if expected >= 0:
        mib = parse_mib(f"{number}{suffix}")
        assert (mib - 1) * 2**20 < expected <= mib * 2**20


@given(st.text(max_size=12))
def test_text_is_a_quantity_or_an_error(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError:
        return
    assert text.isascii()
    assert value == value + 0


@given(st.integers(0, 10**9))
def test_milli_gpus_read_as_gpus(milli: int) -> None:
    assert Decimal(gpus(milli)) * 1000 == milli
    assert not gpus(milli).endswith(".")
