# SPDX-License-Identifier: Apache-2.0
"""Which part of which card each pod of a node is taken to have, for pictures.

Kubernetes does not know. Cards are those of `cards` (the habit of the device plugin), and MIG
instances lie where `layout` has them. What parts are drawn like must not be here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from policies.model.profile import SharingMode
from policies.placement.groups import CardGroup, board_of
from policies.placement.occupancy import Occupancy
from policies.placement.rooms import FULL_MILLI
from policies.vendors import Catalog

WIDTH: Final = 1000
"""Where a card ends; parts lie from 0 to here."""


class Part(NamedTuple):
    """What one pod can be given of a card, from `start` to `end`; `uid` is empty while free."""

    resource: str
    uid: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Card:
    """A card and its parts in order; what lies between them is given out to nobody."""

    mode: SharingMode
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class NodeMap:
    """The cards of a node. `excess` are pods for which it has too few, by UID."""

    name: str
    cards: tuple[Card, ...]
    excess: tuple[str, ...] = ()


_Holders: TypeAlias = Mapping[tuple[str, int], list[str]]
"""Who has units of a device, by resource and the device's number, once for each unit."""


def map_node(here: Occupancy, catalog: Catalog) -> NodeMap:
    """Return the cards of a node: those that are not cut first, then boards that are."""
    holders = _holders(here)
    board = board_of(here.node, catalog)
    slices = board.memory_slices if board is not None else 0
    whole, boards, loose = [], defaultdict[int, list[Part]](list), []
    for group in here.cards.groups.values():
        for index in range(len(group.free)):
            uids = holders.get((group.resource, index), [])
            place = group.instances[index] if index < len(group.instances) else None
            if group.mode is not SharingMode.MIG:
                whole.append(Card(group.mode, tuple(_parts(group, index, uids, 0, WIDTH))))
            elif place is not None and slices:
                bounds = (WIDTH * at // slices for at in (place.start, place.start + place.size))
                boards[place.board] += _parts(group, index, uids, *bounds)
            else:
                width = group.milli * WIDTH // FULL_MILLI
                loose.append(tuple(_parts(group, index, uids, 0, width)))
    cut = [Card(SharingMode.MIG, tuple(sorted(boards[n], key=_start))) for n in sorted(boards)]
    return NodeMap(here.node.name, (*whole, *cut, *_in_a_row(loose)), here.cards.excess)


def _holders(here: Occupancy) -> _Holders:
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    for uid, wish in here.pods.items():
        picks = here.cards.picks_of(uid) or {}
        for ask in wish.ask.devices:
            for index in picks.get(ask.resource, ()):
                found[ask.resource, index] += [uid] * ask.units
    return found


def _parts(
    group: CardGroup, index: int, uids: Iterable[str], start: int, end: int
) -> Iterator[Part]:
    """Yield the parts of one device, the taken ones first."""
    taken = list(uids)
    units = max(1, len(taken) + max(0, group.free[index]), group.units)
    bounds = [start + (end - start) * number // units for number in range(units + 1)]
    # A device that has fewer units than the others has a part that nobody gets.
    given = len(taken) + max(0, group.free[index])
    for number in range(given):
        uid = taken[number] if number < len(taken) else ""
        yield Part(group.resource, uid, bounds[number], bounds[number + 1])


def _in_a_row(instances: Iterable[tuple[Part, ...]]) -> Iterator[Card]:
    """Yield cards that instances fill one after the other, where no board tells their places."""
    parts: list[Part] = []
    at = 0
    for instance in instances:
        width = instance[-1].end if instance else 0
        if parts and at + width > WIDTH:
            yield Card(SharingMode.MIG, tuple(parts))
            parts, at = [], 0
        parts += [part._replace(start=at + part.start, end=at + part.end) for part in instance]
        at += width
    if parts:
        yield Card(SharingMode.MIG, tuple(parts))


def _start(part: Part) -> int:
    return part.start
