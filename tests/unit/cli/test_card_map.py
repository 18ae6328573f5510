# SPDX-License-Identifier: Apache-2.0
"""`sluice map` draws who has which cards, in a terminal and as an SVG."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from rich.console import Console

import sluice
from policies.placement.sighting import Sighting, Sightings
from reconciler.cli.card_map import ASSUMED, card_map
from reconciler.cli.map_svg import map_svg
from reconciler.cli.map_text import print_map
from reconciler.cli.palette import COLOURS, LINE, PAPER, TEXT, contrast, looks
from reconciler.cli.terminal import BAD_INPUT
from tests.controlplane import nodes
from tests.support.builders import GPU
from tests.support.fleets import Json, example, fleet, pictured, pod, ready, write

SVG = "{http://www.w3.org/2000/svg}"

MAP = f"""\
A chat (0.5 GPUs)   B finance (0.375 GPUs)   C research (6 GPUs)   - no tenant (1 GPU)   . free

AMD_Instinct_MI300X_OAM
mi300x       [........] [........] [........] [........] [........] [........] [........] [........]  NotReady

NVIDIA-A100-SXM4-80GB
a100-whole   [--------] [........] [........] [........] [........] [........] [........] [........]  Ready,SchedulingDisabled

NVIDIA-H100-80GB-HBM3
h100-mig     [........] [........] [......B ] [......B ] [B...... ] [....... ] [....... ] [....... ]
h100-shared  [AA......] [AA......] [........] [........] [........] [........] [........] [........]
h100-whole   [CCCCCCCC] [CCCCCCCC] [CCCCCCCC] [CCCCCCCC] [CCCCCCCC] [CCCCCCCC] [........] [........]

{ASSUMED}
"""  # noqa: E501 - as wide as it is


def drawn(items: Iterable[Json]) -> ET.Element:
    return ET.fromstring(map_svg(card_map(fleet(items))))  # noqa: S314 - it is our own


def words(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_the_terminal_shows_each_node_each_card_and_who_has_it() -> None:
    stream = io.StringIO()
    print_map(card_map(fleet(example())), Console(file=stream, soft_wrap=True, width=10_000))
    assert stream.getvalue() == MAP


def test_cards_are_no_wider_than_their_smallest_part_needs() -> None:
    stream = io.StringIO()
    console = Console(file=stream, soft_wrap=True, width=10_000)
    print_map(card_map(fleet([ready(nodes.time_sliced("a", count=2, replicas=4))])), console)
    assert "a  [....] [....]" in stream.getvalue()


def test_pods_without_a_card_are_named_beside_their_node() -> None:
    items = [ready(nodes.whole("a", count=1)), *(pod(f"p{i}", "a", {GPU: 2}) for i in range(5))]
    stream = io.StringIO()
    print_map(card_map(fleet(items)), Console(file=stream, soft_wrap=True, width=10_000))
    assert "without a card: team/p0, team/p1, team/p2 and 2 more" in stream.getvalue()
    assert "a +5 without a card" in words(drawn(items))


def test_the_svg_has_legend_nodes_and_what_is_assumed() -> None:
    told = words(drawn(example()))
    assert told[:2] == ["A", "chat (0.5 GPUs)"]
    assert {"NVIDIA-H100-80GB-HBM3", "h100-whole", "mi300x NotReady"} <= set(told)
    assert ASSUMED.startswith(next(line for line in told if line.startswith("Which card")))
    titles = [element.text for element in drawn(example()).iter(f"{SVG}title")]
    assert "h100-whole, card 0: nvidia.com/gpu, team/ft-1 (research)" in titles


def test_the_same_map_is_the_same_bytes_in_whatever_order_it_was_read() -> None:
    forth, back = example(), example()[::-1]
    assert map_svg(card_map(fleet(forth))) == map_svg(card_map(fleet(back)))


def test_nothing_of_the_svg_lies_outside_of_it_or_over_another_card() -> None:
    root = drawn(pictured())
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    frames = []
    for box in root.iter(f"{SVG}rect"):
        if "x" not in box.attrib:
            continue
        x, y, w, h = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height  # noqa: PT018 - one claim
        if box.attrib["fill"] == "none":
            frames.append((x, y))
    assert len(frames) == len(set(frames)) == 15 * 8


def test_names_that_are_markup_are_shown_as_they_are() -> None:
    items = [ready(nodes.whole("<b>&", count=1)), pod("p", "<b>&", {GPU: 1}, tenant='"<x>')]
    assert {"<b>&", '"<x> (1 GPU)'} <= set(words(drawn(items)))


def test_a_long_name_is_cut_off_and_told_to_whoever_points_at_it() -> None:
    name = "node-" + "x" * 200
    root = drawn([ready(nodes.whole(name, count=1))])
    (shown,) = (text for text in words(root) if text.startswith("node-"))
    assert shown.endswith("…")
    assert name in [element.text for element in root.iter(f"{SVG}title")]


def test_letters_can_be_read_on_every_colour() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    for colour in (*COLOURS, LINE, TEXT):
        assert contrast(PAPER, colour) >= 4.5
    assert contrast("#ffffff", "#000000") == pytest.approx(21)


def test_tenants_beyond_the_colours_are_told_apart_by_stripes_and_letters() -> None:
    found = looks([f"t{number:02}" for number in range(30)])
    assert len({(look.colour, look.stripes) for look in found.values()}) == 30
    assert len({look.letter for look in found.values()}) == 30
    assert looks(["b", "", "a"])[""].letter == "-"
    assert list(looks(["b", "a"])) == ["a", "b"]


def test_json_says_what_is_assumed_and_names_every_pod(tmp_path: Path) -> None:
    path = write(example(), tmp_path / "dump.json")
    result = CliRunner().invoke(sluice.main, ["map", "-f", str(path), "-o", "json"])
    found = json.loads(result.output)
    assert found["assumed"] == ASSUMED
    assert {"tenant": "research", "milli": 6000} in found["tenants"]
    (whole,) = (node for node in found["nodes"] if node["name"] == "h100-whole")
    assert whole["cards"][0]["parts"] == [
        {
            "resource": GPU,
            "start": 0,
            "end": 1000,
            "pod": "team/ft-1",
            "tenant": "research",
            "isSeen": False,
        }
    ]


def test_pods_that_telemetry_shows_are_on_those_cards_and_counted() -> None:
    found = fleet(
        [ready(nodes.whole("a", count=2)), *(pod(f"p{i}", "a", {GPU: 1}) for i in (0, 1))]
    )
    sightings = {("team", "p0"): Sighting((1,), 9e9), ("team", "p1"): Sighting((0,), 9e9)}
    found.model.put_sightings("a", Sightings(2, sightings))
    drawn_map = card_map(found)
    (node,) = drawn_map.models["NVIDIA-H100-80GB-HBM3"]
    assert [card.parts[0].uid for card in node.cards.cards] == ["uid-p1", "uid-p0"]
    assert drawn_map.assumed.startswith("Telemetry shows 2 pods on their cards. Of others: ")


def test_the_svg_is_written_where_it_was_asked(tmp_path: Path) -> None:
    path, svg = write(example(), tmp_path / "dump.json"), tmp_path / "gpus.svg"
    result = CliRunner().invoke(sluice.main, ["map", "-f", str(path), "--svg", str(svg)])
    assert (result.exit_code, result.output) == (0, f"wrote {svg}\n")
    piped = CliRunner().invoke(sluice.main, ["map", "-f", str(path), "--svg", "-"])
    assert piped.stdout_bytes == svg.read_bytes()
    nowhere = tmp_path / "no" / "gpus.svg"
    failed = CliRunner().invoke(sluice.main, ["map", "-f", str(path), "--svg", str(nowhere)])
    assert failed.exit_code == BAD_INPUT
    assert failed.output == f"error: {nowhere}: no such file or directory\n"
