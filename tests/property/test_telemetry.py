# SPDX-License-Identifier: Apache-2.0
"""Whatever samples come, in whatever order: a number that is told was measured, and lately."""

import math

from hypothesis import given
from hypothesis import strategies as st

from policies.telemetry.freshness import Freshness
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import PodName, Sample, Subject
from policies.telemetry.smoothing import Method, Smoothing
from policies.telemetry.state import TelemetryState
from policies.telemetry.views import CardTelemetry

_LIMITS = Freshness(30.0, 5.0)
_ODD = st.sampled_from(
    [math.nan, math.inf, -math.inf, -1.0, 2147483632.0, 140737488355328.0, 9.2e18, 65535.0]
)
_VALUES = {
    Quantity.UTILISATION: st.floats(0, 1),
    Quantity.MEMORY_USED: st.floats(0, 80_000),
    Quantity.MEMORY_FREE: st.floats(0, 80_000),
    Quantity.MEMORY_TOTAL: st.floats(80_000, 81_000),
}
_PODS = st.sampled_from([None, PodName("t", "a"), PodName("t", "b")])
_SUBJECTS = st.builds(
    lambda card, pod, part: Subject("node-a", f"GPU-{card}", card, part[0], part[1], pod),
    st.integers(0, 1),
    _PODS,
    st.sampled_from([("", ""), ("1", "3g.40gb"), ("2", "1g.10gb")]),
)


@st.composite
def _samples(draw: st.DrawFn) -> tuple[float, Sample]:
    """Draw by how much the clock moves, which may be back, and a sample around that time."""
    quantity = draw(st.sampled_from(list(_VALUES)))
    step = draw(st.sampled_from([0.0, 1.0, 10.0, 40.0, -20.0]))
    age = draw(st.sampled_from([0.0, 4.0, -4.0, -60.0, 29.0, 36.0, math.nan]))
    value = draw(st.one_of(_VALUES[quantity], _ODD))
    return step, Sample(quantity, draw(_SUBJECTS), value, age, draw(st.integers(0, 1)))


def _check(card: CardTelemetry, now: float) -> None:
    for values in (card.values, *(instance.values for instance in card.instances)):
        if values.utilisation is not None:
            assert 0 <= values.utilisation.value <= 1.01
        for memory in (
            None if values.memory_used_mib is None else values.memory_used_mib.value,
            values.memory_free_mib,
            values.memory_total_mib,
        ):
            assert memory is None or 0 <= memory <= 3 * 3 * 81_000
        load = values.load()
        assert load is None or 0 <= load <= 1
        assert load is None or values.time is not None
        assert values.time is None or _LIMITS.is_fresh(values.time, now)
        assert values.fresh_until >= now


@given(st.lists(_samples(), max_size=40), st.sampled_from(list(Method)))
def test_what_is_told_was_measured_within_the_limits(
    steps: list[tuple[float, Sample]], method: Method
) -> None:
    smoothing = {Quantity.UTILISATION: Smoothing(method, 60.0)}
    state, now = TelemetryState(lambda _: _LIMITS, smoothing), 1_800_000_000.0
    for step, drawn in steps:
        now += step
        sample = Sample(drawn.quantity, drawn.subject, drawn.value, now - drawn.time, drawn.rank)
        state.put(sample, now)
        view = state.node("node-a", now)
        for card in view.cards:
            _check(card, now)
        load = view.load()
        assert load is None or 0 <= load <= 1
    later = state.node("node-a", now + 100)
    assert later.load() is None
    assert all(card.values.utilisation is None for card in later.cards)
    assert later.memory_used_mib is None


@given(st.lists(_samples(), max_size=20), st.floats(0, 34))
def test_a_view_holds_until_the_time_that_it_names(
    steps: list[tuple[float, Sample]], wait: float
) -> None:
    state, now = TelemetryState(lambda _: _LIMITS), 1_800_000_000.0
    for _, drawn in steps:
        state.put(
            Sample(drawn.quantity, drawn.subject, drawn.value, now - drawn.time, drawn.rank), now
        )
    view = state.node("node-a", now)
    if now + wait <= view.fresh_until and math.isfinite(view.fresh_until):
        assert state.node("node-a", now + wait) == view
