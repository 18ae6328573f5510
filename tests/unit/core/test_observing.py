# SPDX-License-Identifier: Apache-2.0
"""Mode Observe: the first pass has changed nothing, and the second must not miss the change."""

from policies.model.reasons import Reason
from policies.model.request import Operation
from tests.support.builders import REFERENCE, container, mutate, pod, policy_set, validate

_OBSERVING = policy_set(
    REFERENCE
    + """
---
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {name: cluster}
spec: {mode: Observe}
"""
)


def test_the_second_pass_decides_on_a_pod_that_was_not_rewritten() -> None:
    first, second = mutate(pod(), _OBSERVING), validate(pod(), _OBSERVING)

    assert first.allowed
    assert first.patch
    assert second.allowed
    assert second.violations == ()
    assert (second.policy, second.given) == (first.policy, first.given)


def test_both_passes_say_what_would_be_refused() -> None:
    bad = pod(container(gpus="2"))

    for decision in (mutate(bad, _OBSERVING), validate(bad, _OBSERVING)):
        assert decision.reasons == (Reason.MULTIPLE_SHARES,)


def test_a_debug_container_that_was_not_changed_is_not_missed_either() -> None:
    before, after = pod(), pod(ephemeralContainers=[container("debugger")])

    decision = validate(
        after,
        _OBSERVING,
        operation=Operation.UPDATE,
        subresource="ephemeralcontainers",
        old_object=before,
    )

    assert decision.allowed
    assert decision.violations == ()
