# SPDX-License-Identifier: Apache-2.0
"""Draws lines over percent of GPUs asked for, one panel for each workload, as one SVG file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 330, 230
_LEFT, _TOP, _RIGHT, _BOTTOM = 44, 30, 12, 34
_FIRST: Final = 70
"""Below this demand nearly everything is placed in any way, so that there is nothing to see."""
_COLOURS: Final = ("#1f6feb", "#d29922", "#8b949e")
_INK: Final = "#57606a"
_TEXT: Final = f'font-family="sans-serif" font-size="11" fill="{_INK}"'
_RING: Final = f'r="3.5" fill="none" stroke="{_INK}"'


@dataclass(frozen=True, slots=True)
class Panel:
    """A workload: percent allocated by percent asked for each line, and published points."""

    title: str
    lines: Mapping[str, Sequence[float]]
    points: Mapping[int, float]


def draw(panels: Sequence[Panel], points_name: str) -> str:
    """Return the panels two by two, with a legend of the first one's lines."""
    width, rows = 2 * _WIDTH, -(-len(panels) // 2)
    height = rows * _HEIGHT + 28
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {_TEXT}>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for index, panel in enumerate(panels):
        across, down = index % 2 * _WIDTH, index // 2 * _HEIGHT
        parts.append(f'<g transform="translate({across} {down})">{"".join(_panel(panel))}</g>')
    parts.extend(_legend(tuple(panels[0].lines), points_name, rows * _HEIGHT + 14))
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    yield f'<text x="{_LEFT}" y="18" font-size="13" fill="#24292f">{escape(panel.title)}</text>'
    for percent in range(_FIRST, 101, 10):
        x, y = _x(percent), _y(percent)
        yield f'<path d="M{_LEFT} {y}H{right}M{x} {_TOP}V{bottom}" stroke="#d8dee4"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{percent}</text>'
        yield f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{percent}</text>'
    middle = (_LEFT + right) // 2
    yield f'<text x="{middle}" y="{bottom + 28}" text-anchor="middle">% of GPUs asked for</text>'
    across, along = 12, (_TOP + bottom) // 2
    yield (
        f'<text transform="translate({across} {along}) rotate(-90)" text-anchor="middle">'
        "% allocated</text>"
    )
    for colour, line in reversed(list(zip(_COLOURS, panel.lines.values(), strict=False))):
        path = "L".join(
            f"{_x(asked)} {_y(line[asked])}"
            for asked in range(_FIRST, 101)
            if line[asked] >= _FIRST
        )
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for asked, allocated in panel.points.items():
        if allocated >= _FIRST:
            yield f'<circle cx="{_x(asked)}" cy="{_y(allocated)}" {_RING}/>'


def _legend(names: Sequence[str], points_name: str, y: int) -> Iterator[str]:
    x = _LEFT
    for colour, name in zip(_COLOURS, names, strict=False):
        yield f'<path d="M{x} {y}h18" stroke="{colour}" stroke-width="2"/>'
        yield f'<text x="{x + 24}" y="{y + 4}">{escape(name)}</text>'
        x += 44 + 7 * len(name)
    yield f'<circle cx="{x + 8}" cy="{y}" {_RING}/>'
    yield f'<text x="{x + 18}" y="{y + 4}">{escape(points_name)}</text>'


def _x(percent: float) -> float:
    return round(_LEFT + (percent - _FIRST) / (100 - _FIRST) * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(percent: float) -> float:
    span = _HEIGHT - _TOP - _BOTTOM
    return round(_HEIGHT - _BOTTOM - (percent - _FIRST) / (100 - _FIRST) * span, 1)
