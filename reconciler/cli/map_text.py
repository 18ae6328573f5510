# SPDX-License-Identifier: Apache-2.0
"""The map of cards in a terminal: a line for each node, a block of letters for each card."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from policies.admission.charging import amount
from policies.placement.mapping import WIDTH, Card
from reconciler.cli.card_map import CardMap, NodeCards
from reconciler.cli.palette import NO_TENANT, Look

_FREE: Final = "."
_GAP: Final = " "
_LEAST, _MOST = 2, 8
"""How many characters wide a card is drawn."""
_SHOWN: Final = 3
"""So many pods without a card are named."""


def print_map(found: CardMap, console: Console) -> None:
    """Print the legend, the nodes by model, and what is assumed."""
    console.print(_legend(found))
    width = _width(found)
    names = max((len(n.name) for nodes in found.models.values() for n in nodes), default=0)
    for model, nodes in found.models.items():
        console.print(Text(f"\n{model}", style="bold"))
        for node in nodes:
            console.print(_line(node, found, width, names))
    console.print(Text(f"\n{found.assumed}", style="dim"))


def _legend(found: CardMap) -> Text:
    legend = Text()
    for tenant, look in found.looks.items():
        legend.append(look.letter, style=_style(look))
        legend.append(f" {tenant or NO_TENANT} ({amount(found.milli[tenant])})   ")
    return legend.append(f"{_FREE} free")


def _line(node: NodeCards, found: CardMap, width: int, names: int) -> Text:
    line = Text(f"{node.name:<{names}}  ")
    looks = found.looks
    for number, card in enumerate(node.cards.cards):
        if number:
            line.append(" ")
        line.append("[", style="dim")
        for letter, look in _letters(card, found, looks, width):
            line.append(letter, style=_style(look) if look is not None else "")
        line.append("]", style="dim")
    if node.status != "Ready":
        line.append(f"  {node.status}", style="bold")
    if node.cards.excess:
        line.append(f"  without a card: {_listed(map(found.name, node.cards.excess))}", "bold")
    return line


def _letters(
    card: Card, found: CardMap, looks: Mapping[str, Look], width: int
) -> Iterator[tuple[str, Look | None]]:
    """Yield each character of a card: what lies at its middle."""
    for number in range(width):
        at = (2 * number + 1) * WIDTH // (2 * width)
        part = next((part for part in card.parts if part.start <= at < part.end), None)
        if part is None:
            yield _GAP, None
        elif not part.uid:
            yield _FREE, None
        else:
            look = looks[found.tenant(part.uid)]
            yield look.letter, look


def _width(found: CardMap) -> int:
    """Return how wide cards are, so that the smallest part of any is seen."""
    sizes = (
        part.end - part.start
        for nodes in found.models.values()
        for node in nodes
        for card in node.cards.cards
        for part in card.parts
    )
    smallest = max(1, min(sizes, default=WIDTH))
    return min(_MOST, max(_LEAST, -(-WIDTH // smallest)))


def _style(look: Look) -> str:
    return f"bold white on {look.colour}"


def _listed(names: Iterable[str]) -> str:
    listed = sorted(names)
    rest = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + rest
