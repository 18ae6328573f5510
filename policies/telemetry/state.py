# SPDX-License-Identifier: Apache-2.0
"""All that is known of all cards, fed sample by sample; it forgets what nobody tells any more.

Mutable, and pure: every time is an argument. Who wants to know of changes is not known here.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from policies.telemetry.freshness import Freshness
from policies.telemetry.quantities import Quantity, is_measurement
from policies.telemetry.readings import Reading
from policies.telemetry.samples import Sample, Subject
from policies.telemetry.smoothing import RAW, Smoothing, smoother
from policies.telemetry.viewing import Moment, node_view, values_of, with_instances
from policies.telemetry.views import CardTelemetry, InstanceTelemetry, NodeTelemetry, Values

_FORGET_AFTER: Final = 10.0
"""How many times its age limit a card is remembered, for what its counters have grown."""


class Outcome(StrEnum):
    """What became of a sample."""

    TAKEN = "Taken"
    OLDER = "Older"
    NOT_A_MEASUREMENT = "NotAMeasurement"
    STALE = "Stale"
    AHEAD = "Ahead"


class _Part:
    """The readings of a card itself, or of one instance."""

    __slots__ = ("profile", "readings", "seen")

    def __init__(self) -> None:
        self.profile = ""
        self.seen = 0.0
        self.readings: dict[Quantity, dict[int, Reading]] = {}


class _Card:
    __slots__ = ("index", "parts", "uuid")

    def __init__(self, subject: Subject) -> None:
        self.uuid = subject.uuid
        self.index = subject.index
        self.parts: dict[str, _Part] = {}

    def view(self, node: str, moment: Moment) -> CardTelemetry:
        """Return what may be told of the card."""
        own = self.parts.get("")
        values = values_of(own.readings, moment) if own is not None else Values()
        instances = tuple(
            InstanceTelemetry(id_, part.profile, values_of(part.readings, moment.without_board()))
            for id_, part in sorted(self.parts.items())
            if id_
        )
        # An instance that was unmade is told of no more, and must not make the card unknown.
        live = tuple(each for each in instances if each.values != Values())
        return CardTelemetry(node, self.uuid, self.index, with_instances(values, live), live)


class TelemetryState:
    """The newest of every card. `freshness_of` gives the limits for a node's cards.

    `whole_nodes` are the limits of what is told of a node as a whole; the same if not given.
    """

    def __init__(
        self,
        freshness_of: Callable[[str], Freshness],
        smoothing: Mapping[Quantity, Smoothing] | None = None,
        whole_nodes: Freshness | None = None,
    ) -> None:
        self._freshness_of = freshness_of
        self._whole_nodes = whole_nodes
        self._smoothing = dict(smoothing or {})
        self._nodes: dict[str, dict[str, _Card]] = {}

    def put(self, sample: Sample, now: float) -> Outcome:
        """Take up a sample if it is a measurement, fresh, and not older than what is known."""
        freshness = self._limits(sample.subject.node, sample.subject.card)
        if not is_measurement(sample.quantity, sample.value):
            return Outcome.NOT_A_MEASUREMENT
        if not freshness.is_fresh(sample.time, now):
            # Also a time that is no number. One ahead would hide all samples that come after it.
            return Outcome.AHEAD if freshness.is_ahead(sample.time, now) else Outcome.STALE
        part = self._part(sample.subject)
        part.seen = max(part.seen, sample.time)
        by_rank = part.readings.setdefault(sample.quantity, {})
        known = by_rank.get(sample.rank)
        if known is None or not freshness.is_fresh(known.time, now):
            # After a gap, or when our own clock was set back, smoothing begins anew.
            by_rank[sample.rank] = self._reading(sample, known)
            return Outcome.TAKEN
        return Outcome.TAKEN if known.take(sample) else Outcome.OLDER

    def _reading(self, sample: Sample, known: Reading | None) -> Reading:
        reading = Reading(sample, smoother(self._smoothing.get(sample.quantity, RAW)))
        if known is not None:
            reading.resume(known.growth)
        return reading

    def _limits(self, node: str, card: str) -> Freshness:
        if not card and self._whole_nodes is not None:
            return self._whole_nodes
        return self._freshness_of(node)

    def _part(self, subject: Subject) -> _Part:
        cards = self._nodes.get(subject.node)
        if cards is None:
            cards = self._nodes[subject.node] = {}
        card = cards.get(subject.card)
        if card is None:
            card = cards[subject.card] = _Card(subject)
        elif card.index != subject.index and subject.index is not None:
            card.index = subject.index
        part = card.parts.get(subject.instance)
        if part is None:
            part = card.parts[subject.instance] = _Part()
        if subject.profile:
            part.profile = subject.profile
        return part

    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes that a sample has told of, fresh or not."""
        return tuple(self._nodes)

    def is_fresh(self, name: str, now: float) -> bool:
        """Tell whether anything is known of a node now; cheaper than a view of it."""
        return any(
            self._limits(name, key).is_fresh(part.seen, now)
            for key, card in self._nodes.get(name, {}).items()
            for part in card.parts.values()
        )

    def node(self, name: str, now: float, board_mib: int | None = None) -> NodeTelemetry:
        """Return what may be told of a node; nothing but its name if nothing is known."""
        moment = Moment(now, self._limits(name, ""), self._smoothing)
        known = self._nodes.get(name, {})
        whole = known[""].view(name, moment).values if "" in known else Values()
        moment = Moment(now, self._freshness_of(name), self._smoothing, board_mib)
        cards = [card.view(name, moment) for key, card in known.items() if key]
        cards.sort(key=lambda card: (card.index is None, card.index or 0, card.uuid))
        return node_view(name, cards, whole)

    def forget(self, node: str) -> None:
        """Drop a node that is gone."""
        self._nodes.pop(node, None)

    def prune(self, now: float) -> None:
        """Drop cards and instances that nobody has told of for long."""
        for name, cards in list(self._nodes.items()):
            for key, card in list(cards.items()):
                limit = now - _FORGET_AFTER * self._limits(name, key).max_age_seconds
                for instance, part in list(card.parts.items()):
                    if part.seen < limit:
                        del card.parts[instance]
                if not card.parts:
                    del cards[key]
            if not cards:
                del self._nodes[name]
