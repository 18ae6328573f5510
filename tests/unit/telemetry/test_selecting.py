# SPDX-License-Identifier: Apache-2.0
"""The nodes that a class's terms select are those whose class it is."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.telemetry.classes import DEFAULT_CLASSES, SAMPLING_LABEL, SamplingClass, class_of
from policies.telemetry.selecting import terms_of

_SHARING = "nvidia.com/gpu.sharing-strategy"
_THREE = (
    SamplingClass("fast", 1.0, labels=(("tier", frozenset({"a", "b"})), ("x", frozenset({"1"})))),
    SamplingClass("middle", 10.0, labels=((_SHARING, frozenset({"mps"})),)),
    SamplingClass("slow", 60.0, labels=(("tier", frozenset({"a"})),)),
)
_LABELS = st.fixed_dictionaries(
    {},
    optional={
        SAMPLING_LABEL: st.sampled_from(["inference", "training", "fast", "slow", "unknown", ""]),
        _SHARING: st.sampled_from(["time-slicing", "mps", "none", ""]),
        "tier": st.sampled_from(["a", "b", "c"]),
        "x": st.sampled_from(["1", "2"]),
    },
)


def _selects(sampling: SamplingClass, classes: tuple[SamplingClass, ...], labels: object) -> bool:
    assert isinstance(labels, Mapping)
    terms = terms_of(sampling, classes)
    return any(all(each.matches(labels) for each in term) for term in terms)


@pytest.mark.parametrize("classes", [DEFAULT_CLASSES, _THREE, _THREE[:1]])
@given(labels=_LABELS)
def test_every_node_is_selected_by_its_own_class_and_no_other(
    classes: tuple[SamplingClass, ...], labels: Mapping[str, str]
) -> None:
    chosen = [each for each in classes if _selects(each, classes, labels)]
    assert chosen == [class_of(labels, classes)]
