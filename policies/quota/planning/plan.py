# SPDX-License-Identifier: Apache-2.0
"""The plan: what to release now, what to take back of torn gangs, and why the rest waits."""

from policies.quota.planning.passing import Pass
from policies.quota.planning.values import Plan
from policies.quota.state import QuotaState


def plan(state: QuotaState, now: int, limit: int = 500) -> Plan:
    """Plan on the state as it is at `now` (Unix seconds), with at most so many releases.

    The state stays as it is, but for the time and what is remembered. Whoever carries the plan
    out tells the state of each release (`charge_intent`) before it is sent.
    """
    if not state.is_ready:
        return Plan()
    state.tick(now)
    state.known.refresh(state)
    with state.fit.trial():
        return Pass(state, now, limit).run(state.known)
