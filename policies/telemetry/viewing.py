# SPDX-License-Identifier: Apache-2.0
"""From readings to what may be told of a card: the lowest rank that is fresh, and what follows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from policies.telemetry.counters import Growth
from policies.telemetry.freshness import Freshness
from policies.telemetry.quantities import Quantity
from policies.telemetry.readings import Reading, Readings
from policies.telemetry.smoothing import Smoothed, Smoothing
from policies.telemetry.views import CardTelemetry, InstanceTelemetry, NodeTelemetry, PodUse, Values

_LOAD_PARTS = (
    Quantity.UTILISATION,
    Quantity.MEMORY_USED,
    Quantity.MEMORY_FREE,
    Quantity.MEMORY_TOTAL,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """When and by which limits is looked. `board_mib` is a card's memory if no sample tells it."""

    now: float
    freshness: Freshness
    smoothing: Mapping[Quantity, Smoothing]
    board_mib: int | None = None

    def without_board(self) -> "Moment":
        """Return it for what is but a part of a card."""
        return replace(self, board_mib=None)


def values_of(readings: Readings, moment: Moment) -> Values:
    """Return what is fresh of a card's or an instance's readings."""
    fresh = _fresh(readings, moment)
    used, free, total = _memory(fresh, moment)
    errors = fresh.get(Quantity.UNCORRECTABLE_ERRORS)
    xid = fresh.get(Quantity.XID)
    times = [reading.time for reading in fresh.values()]
    return Values(
        utilisation=_smoothed(fresh.get(Quantity.UTILISATION), Quantity.UTILISATION, moment),
        memory_used_mib=used,
        memory_free_mib=free,
        memory_total_mib=total,
        sm_occupancy=_value(fresh.get(Quantity.SM_OCCUPANCY)),
        power_watts=_power(fresh),
        temperature_celsius=_value(fresh.get(Quantity.TEMPERATURE)),
        xid=None if xid is None else int(xid.value),
        uncorrectable_errors=None if errors is None else _increase(errors.growth),
        pods=tuple(_pods(fresh)),
        time=min((fresh[part].time for part in _LOAD_PARTS if part in fresh), default=None),
        fresh_until=moment.freshness.ends(min(times, default=float("inf"))),
    )


def _fresh(readings: Readings, moment: Moment) -> dict[Quantity, Reading]:
    found: dict[Quantity, Reading] = {}
    for quantity, by_rank in readings.items():
        fresh = [
            rank
            for rank, reading in by_rank.items()
            if moment.freshness.is_fresh(reading.time, moment.now)
        ]
        if fresh:
            found[quantity] = by_rank[min(fresh)]
    return found


def _memory(
    fresh: Mapping[Quantity, Reading], moment: Moment
) -> tuple[Smoothed | None, float | None, float | None]:
    """Return used, free and total MiB; one of them may follow from the others."""
    used, free = _value(fresh.get(Quantity.MEMORY_USED)), _value(fresh.get(Quantity.MEMORY_FREE))
    total = _value(fresh.get(Quantity.MEMORY_TOTAL))
    if total is None and used is not None and free is not None:
        total = used + free + (_value(fresh.get(Quantity.MEMORY_RESERVED)) or 0.0)
    if total is None:
        total = moment.board_mib
    if total is not None and used is not None and free is None:
        free = max(0.0, total - used)
    smoothed = _smoothed(fresh.get(Quantity.MEMORY_USED), Quantity.MEMORY_USED, moment)
    if smoothed is None and total is not None and free is not None:
        smoothed = Smoothed(max(0.0, total - free))
    return smoothed, free, total


def _power(fresh: Mapping[Quantity, Reading]) -> float | None:
    """Return the power told, else what the growth of energy comes to."""
    power, energy = fresh.get(Quantity.POWER), fresh.get(Quantity.ENERGY)
    if power is not None:
        return power.value
    return None if energy is None or energy.growth is None else energy.growth.rate


def _increase(growth: Growth | None) -> int | None:
    return None if growth is None else round(growth.increase)


def _pods(fresh: Mapping[Quantity, Reading]) -> Iterable[PodUse]:
    utilisation, used = fresh.get(Quantity.UTILISATION), fresh.get(Quantity.MEMORY_USED)
    shares = dict(utilisation.pods()) if utilisation is not None else {}
    memory = dict(used.pods()) if used is not None else {}
    told = [reading for reading in (utilisation, used) if reading is not None]
    is_own = any(reading.tells_parts for reading in told)
    for pod in {**shares, **memory}:
        yield PodUse(pod, shares.get(pod), memory.get(pod), is_own)


def _value(reading: Reading | None) -> float | None:
    return None if reading is None else reading.value


def _smoothed(reading: Reading | None, quantity: Quantity, moment: Moment) -> Smoothed | None:
    if reading is None:
        return None
    smoothing = moment.smoothing.get(quantity)
    if smoothing is None:
        return Smoothed(reading.value)
    return Smoothed(reading.smoothed, smoothing.method, smoothing.window_seconds)


def with_instances(card: Values, instances: Sequence[InstanceTelemetry]) -> Values:
    """Return a card's values with what only its MIG instances tell.

    Utilisation is the mean over the instances by their compute slices; memory is their sum. Power,
    temperature and errors are the card's, which the exporter repeats for each instance.
    """
    if not instances:
        return card
    parts = [instance.values for instance in instances]
    used = _sum(parts, _used)
    times = [time for time in (card.time, *(part.time for part in parts)) if time is not None]
    xids = [part.xid for part in parts if part.xid is not None]
    return replace(
        card,
        utilisation=card.utilisation or _mean_utilisation(instances),
        memory_used_mib=card.memory_used_mib or (None if used is None else Smoothed(used)),
        memory_free_mib=_either(card.memory_free_mib, _sum(parts, lambda p: p.memory_free_mib)),
        memory_total_mib=_either(card.memory_total_mib, _sum(parts, lambda p: p.memory_total_mib)),
        power_watts=_either(card.power_watts, _largest(part.power_watts for part in parts)),
        temperature_celsius=_either(
            card.temperature_celsius, _largest(part.temperature_celsius for part in parts)
        ),
        xid=card.xid if card.xid is not None else max(xids, default=None),
        time=min(times, default=None),
        fresh_until=min(card.fresh_until, *(part.fresh_until for part in parts)),
    )


def _either(first: float | None, second: float | None) -> float | None:
    return second if first is None else first


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(parts: Iterable[Values], of: Callable[[Values], float | None]) -> float | None:
    """Return the sum over all parts; None if any is unknown."""
    values = [of(part) for part in parts]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _mean_utilisation(instances: Iterable[InstanceTelemetry]) -> Smoothed | None:
    slices, busy = 0, 0.0
    first: Smoothed | None = None
    for instance in instances:
        value = instance.values.utilisation
        if value is None:
            return None
        size = _compute_slices(instance.profile)
        slices, busy, first = slices + size, busy + size * value.value, first or value
    return None if first is None else replace(first, value=busy / slices)


def _compute_slices(profile: str) -> int:
    """Return the compute slices that a profile begins with, 1 where it does not say."""
    digits = profile.partition("g.")[0].rpartition(".")[2]
    # A compute instance's profile, such as 1c.3g.20gb, names its own slices first.
    return int(digits) if digits.isascii() and digits.isdigit() and 0 < int(digits) < 100 else 1  # noqa: PLR2004 - no card has more


def node_view(name: str, cards: Sequence[CardTelemetry], whole: Values) -> NodeTelemetry:
    """Return a node's view; `whole` is what is told of it without its cards, which come first."""
    parts = [card.values for card in cards]
    used = _sum(parts, _used) if parts else None
    total = _sum(parts, lambda part: part.memory_total_mib) if parts else None
    if used is None or total is None:
        used, total = _used(whole), whole.memory_total_mib
        parts.append(whole)
    return NodeTelemetry(
        name,
        tuple(cards),
        used,
        total,
        min((part.time for part in parts if part.time is not None), default=None),
        min((part.fresh_until for part in parts), default=float("inf")),
    )


def _used(values: Values) -> float | None:
    return None if values.memory_used_mib is None else values.memory_used_mib.value
