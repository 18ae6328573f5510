# SPDX-License-Identifier: Apache-2.0
"""Owners come and go at random: nothing that was taken back borrows again within `readmitAfter`."""

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.quota.pods import QuotaPod, Source
from tests.support.planning import World, lending_at_once, node, tenant
from tests.support.reclaim_world import Cycle

_READMIT_SECONDS = 60
_EVENTS = st.lists(
    st.tuples(st.sampled_from(["owner waits", "owner ends", "time"]), st.integers(1, 4)),
    min_size=5,
    max_size=25,
)


def _world() -> World:
    lending = {"cohort": "main", "lending": lending_at_once()}
    made = World(
        [tenant("owner", 8, 16, **lending), tenant("borrower", 2, 16, **lending)],
        [node("n1", 4), node("n2", 4), node("n3", 2)],
    )
    made.idle()
    return made


class _Watched(Cycle):
    """Notes every release that borrows, with its time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.borrowed: list[tuple[int, Source]] = []
        self._seen: set[str] = set()

    def step(self, seconds: int = 5) -> None:
        now = self.world.now
        super().step(seconds)
        for pod in self.world.state.pods():
            charge = pod.charge
            if charge is not None and pod.uid not in self._seen:
                self._seen.add(pod.uid)
                if charge.borrowed:
                    self.borrowed.append((now, pod.source))


def _end_one(cycle: Cycle, many: int) -> None:
    live: list[QuotaPod] = sorted(cycle.live("owner"), key=lambda pod: pod.uid)
    cycle.world.end(*live[:many])


@settings(deadline=None)
@given(_EVENTS, st.booleans())
def test_no_pod_is_evicted_and_let_go_again_in_a_circle(
    events: list[tuple[str, int]], one_controller: bool
) -> None:
    cycle = _Watched(_world())
    for number in range(10):
        uid = "all" if one_controller else f"job-{number}"
        cycle.world.wait("borrower", owner_uid=uid)
    for kind, count in events:
        match kind:
            case "owner waits":
                cycle.world.wait("owner", many=count)
            case "owner ends":
                _end_one(cycle, count)
            case _:
                cycle.run(6 * count)
        cycle.step()
    for at, pod in cycle.evicted:
        again = [t for t, source in cycle.borrowed if source == pod.source and t >= at]
        assert all(t >= at + _READMIT_SECONDS for t in again)
