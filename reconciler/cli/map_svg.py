# SPDX-License-Identifier: Apache-2.0
"""The map of cards as an SVG: the same map gives the same bytes.

Parts of cards are as wide as they are of the card, coloured and lettered by tenant, and tell their
pod to whoever points at them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final
from xml.etree import ElementTree as ET

from policies.admission.charging import amount
from policies.placement.mapping import WIDTH, Card
from reconciler.cli.card_map import CardMap, NodeCards
from reconciler.cli.palette import FREE, LINE, NO_TENANT, PAPER, TEXT, Look, contrast

_PAGE: Final = 1280
_MARGIN: Final = 16
_CARD_WIDTH, _CARD_HEIGHT, _CARD_GAP = 26, 16, 3
_ROW: Final = 8
"""So many cards stand beside each other."""
_NARROWEST: Final = 5
"""Nodes with fewer cards take as much room, for their names."""
_LABEL: Final = 14
_NODE_GAP: Final = 14
_LEGEND: Final = 22
_HEADING: Final = 30
_CHARACTER: Final = 6.2
"""Width of a character of a label."""
_LETTER_ROOM: Final = 9
"""Parts that are narrower have no letter."""
_STRIPES: Final = "stripes"


@dataclass(slots=True)
class _Pen:
    """Draws into a parent element. Positions are in pixels from the upper left corner."""

    parent: ET.Element

    def text(self, x: float, y: float, words: str, **attributes: str) -> None:
        """Write words whose base line is at y."""
        ET.SubElement(self.parent, "text", {"x": _n(x), "y": _n(y), **attributes}).text = words

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *, title: str = ""
    ) -> ET.Element:
        """Draw a rectangle; `title` is told to whoever points at it."""
        found = {"x": _n(x), "y": _n(y), "width": _n(width), "height": _n(height), "fill": fill}
        element = ET.SubElement(self.parent, "rect", found)
        if title:
            ET.SubElement(element, "title").text = title
        return element


def map_svg(found: CardMap) -> bytes:
    """Return the SVG document in UTF-8."""
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
    ET.SubElement(root, "title").text = "GPUs by tenant"
    root.append(_definitions())
    pen = _Pen(ET.SubElement(root, "g", {"font-family": "sans-serif", "font-size": "11"}))
    page = pen.box(0, 0, _PAGE, 0, PAPER)
    y = _draw_legend(pen, found, _MARGIN)
    for model, nodes in found.models.items():
        y += _HEADING
        pen.text(_MARGIN, y - 10, model, fill=TEXT, **{"font-size": "14", "font-weight": "bold"})
        y = _draw_nodes(pen, found, nodes, y)
    for line in wrap(found.assumed, int((_PAGE - 2 * _MARGIN) / _CHARACTER)):
        y += _LABEL + 2
        pen.text(_MARGIN, y, line, fill=LINE)
    height = _n(y + _MARGIN)
    page.set("height", height)
    root.set("viewBox", f"0 0 {_PAGE} {height}")
    root.set("width", str(_PAGE))
    root.set("height", height)
    ET.indent(root)
    drawn: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return drawn + b"\n"


def _definitions() -> ET.Element:
    """Return the stripes of tenants whose colours others have too, one for each time."""
    definitions = ET.Element("defs")
    for number, angle in enumerate((45, 135, 0, 90), 1):
        attributes = {"id": f"{_STRIPES}{number}", "width": "5", "height": "5"}
        attributes |= {"patternUnits": "userSpaceOnUse", "patternTransform": f"rotate({angle})"}
        pattern = ET.SubElement(definitions, "pattern", attributes)
        stripe = {"width": "1.2", "height": "5", "fill": PAPER, "fill-opacity": "0.7"}
        ET.SubElement(pattern, "rect", stripe)
    return definitions


def _draw_legend(pen: _Pen, found: CardMap, y: float) -> float:
    """Draw who is shown how; return where the next thing may begin."""
    x = float(_MARGIN)
    entries = [
        (look, f"{tenant or NO_TENANT} ({amount(found.milli[tenant])})")
        for tenant, look in found.looks.items()
    ]
    for look, words in (*entries, (None, "free"), (Look("", PAPER), "not cut into instances")):
        width = _CARD_WIDTH + 6 + len(words) * _CHARACTER + 18
        if x + width > _PAGE - _MARGIN and x > _MARGIN:
            x, y = _MARGIN, y + _LEGEND
        _draw_part(pen, (x, y, _CARD_WIDTH), look, words)
        pen.text(x + _CARD_WIDTH + 6, y + _CARD_HEIGHT - 4, words, fill=TEXT)
        x += width
    return y + _LEGEND


def _draw_nodes(pen: _Pen, found: CardMap, nodes: Sequence[NodeCards], y: float) -> float:
    """Draw nodes in columns, row by row; return where the next thing may begin."""
    most = max((len(node.cards.cards) for node in nodes), default=0)
    width = max(_NARROWEST, min(_ROW, most)) * (_CARD_WIDTH + _CARD_GAP) + _NODE_GAP
    columns = max(1, (_PAGE - 2 * _MARGIN) // width)
    for first in range(0, len(nodes), columns):
        row = nodes[first : first + columns]
        for number, node in enumerate(row):
            _draw_node(pen, found, node, (_MARGIN + number * width, y, width - _NODE_GAP))
        rows = max(1, *(-(-len(node.cards.cards) // _ROW) for node in row))
        y += _LABEL + rows * (_CARD_HEIGHT + _CARD_GAP) + _NODE_GAP
    return y


def _draw_node(
    pen: _Pen, found: CardMap, node: NodeCards, place: tuple[float, float, float]
) -> None:
    x, y, width = place
    excess = len(node.cards.excess)
    words = node.name + ("" if node.status == "Ready" else f" {node.status}")
    words += f" +{excess} without a card" if excess else ""
    room = int(width / _CHARACTER)
    shown = words if len(words) <= room else f"{words[: room - 1]}…"
    group = _Pen(ET.SubElement(pen.parent, "g"))
    said = [words, *(found.name(uid) for uid in node.cards.excess)]
    ET.SubElement(group.parent, "title").text = "\n".join(said)
    group.text(x, y + _LABEL - 4, shown, fill=TEXT)
    for number, card in enumerate(node.cards.cards):
        row, column = divmod(number, _ROW)
        left = x + column * (_CARD_WIDTH + _CARD_GAP)
        top = y + _LABEL + row * (_CARD_HEIGHT + _CARD_GAP)
        _draw_card(group, found, card, (left, top, f"{node.name}, card {number}"))


def _draw_card(pen: _Pen, found: CardMap, card: Card, place: tuple[float, float, str]) -> None:
    x, y, name = place
    for part in card.parts:
        left, right = (_CARD_WIDTH * at / WIDTH for at in (part.start, part.end))
        look = found.looks[found.tenant(part.uid)] if part.uid else None
        who = f"{found.name(part.uid)} ({found.tenant(part.uid) or NO_TENANT})"
        title = f"{name}: {part.resource}, {who if part.uid else 'free'}"
        _draw_part(pen, (x + left, y, right - left), look, title)
    frame = pen.box(x, y, _CARD_WIDTH, _CARD_HEIGHT, "none")
    frame.set("stroke", LINE)


def _draw_part(pen: _Pen, place: tuple[float, float, float], look: Look | None, title: str) -> None:
    """Draw a part at its place: left, top and width; None is free."""
    x, y, width = place
    element = pen.box(x, y, width, _CARD_HEIGHT, look.colour if look else FREE, title=title)
    element.set("stroke", LINE if look is not None and look.colour == PAPER else PAPER)
    element.set("stroke-width", "0.5")
    if look is None:
        return
    if look.stripes:
        pattern = f"url(#{_STRIPES}{(look.stripes - 1) % 4 + 1})"
        pen.box(x, y, width, _CARD_HEIGHT, pattern).set("pointer-events", "none")
    if width >= _LETTER_ROOM and look.letter:
        ink = PAPER if contrast(PAPER, look.colour) > contrast(TEXT, look.colour) else TEXT
        middle = {"text-anchor": "middle", "pointer-events": "none"}
        pen.text(x + width / 2, y + _CARD_HEIGHT - 4, look.letter, fill=ink, **middle)


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
