# SPDX-License-Identifier: Apache-2.0
"""Nodes as telemetry needs them: their sampling class, and the annotations of their memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from policies.cluster.capacity import label_number
from policies.cluster.reading import mapping, text
from policies.placement.groups import MEMORY_LABEL
from policies.telemetry.classes import DEFAULT_CLASSES, SamplingClass, class_of
from policies.vendors.nvidia import PRODUCT_LABEL, mig_profile_of

MEMORY_USED: Final = "gpu-scheduler/memory-used"
MEMORY_TOTAL: Final = "gpu-scheduler/memory-total"
UPDATED_AT: Final = "gpu-scheduler/updated-at"
"""Annotations of a Node: MiB of all its cards together, and RFC 3339 for when they were so."""

_MAX_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class MemoryNote:
    """What a node's annotations say: MiB, and Unix seconds."""

    used_mib: int
    total_mib: int
    time: float


@dataclass(frozen=True, slots=True)
class TelemetryNode:
    """A node. `note` is None where there is none or it cannot be understood.

    `board_mib` is the memory of each of its cards, None where no label tells it.
    """

    name: str
    uid: str
    sampling: SamplingClass
    note: MemoryNote | None = None
    board_mib: int | None = None


def node_view(
    classes: tuple[SamplingClass, ...] = DEFAULT_CLASSES,
) -> Callable[[Mapping[str, object]], TelemetryNode]:
    """Return the view of raw Nodes, for a reflector."""

    def view(raw: Mapping[str, object]) -> TelemetryNode:
        metadata = mapping(raw, "metadata")
        labels = {
            key: value
            for key, value in mapping(metadata, "labels").items()
            if isinstance(value, str)
        }
        return TelemetryNode(
            text(metadata, "name"),
            text(metadata, "uid"),
            class_of(labels, classes),
            read_note(mapping(metadata, "annotations")),
            _board_mib(labels),
        )

    return view


def read_note(annotations: Mapping[str, object]) -> MemoryNote | None:
    """Return what the annotations say, None unless all three are well-formed and agree."""
    used, total = _mib(text(annotations, MEMORY_USED)), _mib(text(annotations, MEMORY_TOTAL))
    time = _time(text(annotations, UPDATED_AT))
    if used is None or total is None or time is None or used > total:
        return None
    return MemoryNote(used, total, time)


def _board_mib(labels: Mapping[str, str]) -> int | None:
    """Return what GPU feature discovery says of a card; of a cut one it tells the instance's."""
    if mig_profile_of(labels.get(PRODUCT_LABEL, "")) is not None:
        return None
    return label_number(labels, MEMORY_LABEL) or None


def _mib(raw: str) -> int | None:
    is_number = raw.isascii() and raw.isdigit() and len(raw) <= _MAX_DIGITS
    return int(raw) if is_number else None


def _time(raw: str) -> float | None:
    """Read RFC 3339, which always has an offset."""
    try:
        moment = datetime.fromisoformat(raw)
        return moment.timestamp() if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
