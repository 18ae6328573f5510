# SPDX-License-Identifier: Apache-2.0
"""From what is told of a card to who is refused for it: no fault of telemetry refuses a pod."""

import math
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from policies.placement.gauging import gauge_of
from policies.telemetry.names import exporters
from policies.telemetry.quantities import Quantity
from reconciler.telemetry.exposition import Memory, PageReader
from reconciler.telemetry.nodes import node_view
from tests.support.telemetry import CARD, NOW, Known
from tests.unit.extender.building import World, raw_pod, shared
from webhook.extender.wire import Question

_NODE: Final = CARD.node
_LOST: Final = 60.0
"""Longer than a value is believed for."""

Fault = Callable[[Known], None]


def _hot(known: Known, *, age: float = 0.0) -> None:
    """Tell of a card that is at its limit, `age` seconds ago."""
    known.busy(1.0, age=age)
    known.put(Quantity.MEMORY_USED, 81_000, age=age)
    known.put(Quantity.MEMORY_FREE, 500, age=age)


def _idle(known: Known) -> None:
    known.busy(0.1)
    known.memory(1_000, 80_000)


def _worthless(value: float) -> Fault:
    def tell(known: Known) -> None:
        _idle(known)
        known.busy(value)
        known.memory(value, value)

    return tell


def _vanished(known: Known) -> None:
    _hot(known)
    known.now += _LOST


def _repeated(known: Known) -> None:
    """Have what was measured long ago told again and again, as Prometheus does."""
    for _ in range(4):
        _hot(known, age=_LOST)
        known.now += 1


def _clock_behind(known: Known) -> None:
    _hot(known, age=-_LOST)


def _clock_set_back(known: Known) -> None:
    _hot(known)
    known.now -= _LOST


def _duplicated(known: Known) -> None:
    for _ in range(3):
        _idle(known)


def _counter_reset(known: Known) -> None:
    _idle(known)
    for joules in (9e9, 9.1e9, 5.0, 50.0):
        known.put(Quantity.ENERGY, joules)
        known.now += 1


def _half_told(known: Known) -> None:
    known.busy(1.0)


_FAULTS: Final[Mapping[str, Fault]] = {
    "NaN": _worthless(math.nan),
    "infinity": _worthless(math.inf),
    "a value that stands for none": _worthless(9223372036854775794.0),
    "an exporter that vanished": _vanished,
    "an old value, told again": _repeated,
    "our clock is behind": _clock_behind,
    "our clock was set back": _clock_set_back,
    "duplicate series": _duplicated,
    "a counter that was reset": _counter_reset,
    "a part of the metrics": _half_told,
}


def _refused(known: Known) -> Mapping[str, str]:
    """Return why nodes are out for a pod that states its need, by what is known now."""
    world = World()
    raw = shared(_NODE)
    node, board_mib = world.node(raw), node_view()(raw).board_mib
    world.model.put_gauge(_NODE, gauge_of(node, known.state.node(_NODE, known.now, board_mib)))
    question = Question(raw_pod("p", mib=8_192), (_NODE,))
    return world.answers.filter(question).unresolvable


def test_what_is_told_freshly_of_a_hot_card_refuses() -> None:
    known = Known()
    _hot(known)
    assert _NODE in _refused(known)


@pytest.mark.parametrize("name", _FAULTS)
def test_no_fault_of_telemetry_refuses_a_pod(name: str) -> None:
    known = Known()
    _FAULTS[name](known)
    assert _refused(known) == {}


_AMD: Final = b"".join(
    b'%s{card_model="xxxx",cluster_name="",container="",gpu_compute_partition_type="spx",'
    b'gpu_id="0",gpu_partition_id="0",hostname="x",namespace="",pod="",serial_number="xxxx"} %d\n'
    % line
    for line in (
        (b"gpu_gfx_activity", 97),
        (b"gpu_used_vram", 190_000),
        (b"gpu_total_vram", 196_592),
    )
)
"""The labels that cannot be switched off, and empty ones of an idle card."""

_HAMI: Final = b"""\
hami_host_gpu_utilization_ratio{device_index="0",device_type="y",device_uuid="GPU-1",node="x"} 97
hami_host_gpu_memory_used_bytes{device_index="0",device_type="y",device_uuid="GPU-1",node="x"} 84e9
hami_host_gpu_memory_controller_utilization_ratio{device_index="0",device_uuid="GPU-1"} 40
hami_vgpumonitor_collect_success{node="x"} 1
"""


@pytest.mark.parametrize("page", [_AMD, _HAMI], ids=["AMD", "HAMi"])
def test_what_other_exporters_write_refuses_as_well(page: bytes) -> None:
    known = Known()
    for sample in PageReader(exporters()).read(page, NOW, _NODE, Memory()).samples:
        known.state.put(sample, known.now)
    assert _NODE in _refused(known)
