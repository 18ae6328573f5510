# SPDX-License-Identifier: Apache-2.0
"""`sluice tenants` prints what statuses say, as kubectl would."""

import io
import json
from collections.abc import Mapping

import pytest
from rich.console import Console

from reconciler.cli.tenants import Tenants, print_tenants, print_tenants_json
from reconciler.cli.terminal import age

NOW = 1_000_000

RESEARCH = {
    "metadata": {"name": "research"},
    "spec": {"cohort": "main"},
    "status": {
        "guarantee": "96",
        "ceiling": "128",
        "used": "112",
        "borrowed": "16",
        "lent": "0",
        "owed": "0",
        "pending": 9,
        "oldestWait": "1970-01-12T13:32:40Z",
        "conditions": [
            {"type": "OverQuota", "status": "True", "message": "uses more [than] it may"},
            {"type": "Accepted", "status": "True", "message": "fine"},
            {"type": "OddPods", "status": "False", "message": "none"},
        ],
    },
}
OPEN = {"metadata": {"name": "open"}, "status": {"used": "0", "guarantee": "0", "pending": 0}}
NEW = {"metadata": {"name": "new"}, "spec": {}}


def printed(*items: Mapping[str, object], wide: bool = False) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, soft_wrap=True, width=200)
    print_tenants(Tenants(items, NOW), console, wide=wide)
    return stream.getvalue().splitlines()


def test_a_row_says_what_kubectl_get_tenants_says() -> None:
    head, row, wrong = printed(RESEARCH)
    assert head.split("  ")[0] == "NAME"
    assert head.split()[1:] == [
        *("GUARANTEE", "CEILING", "USED", "BORROWED", "PENDING", "OLDEST", "WAIT"),
    ]
    assert row.split() == ["research", "96", "128", "112", "16", "9", "14m"]
    assert wrong == "research: OverQuota: uses more [than] it may"


def test_wide_adds_what_is_lent_and_owed() -> None:
    assert printed(RESEARCH, wide=True)[1].split()[5:7] == ["0", "0"]


def test_no_ceiling_and_nothing_known_are_told_apart() -> None:
    _, bounded, unknown = printed(OPEN, NEW)
    assert bounded.split() == ["open", "0", "-", "0", "0", "0"]
    assert unknown.split() == ["new", "?", "?", "?", "?", "?"]


def test_an_odd_status_stops_nothing() -> None:
    odd = {"metadata": {"name": "x"}, "status": {"used": 3, "oldestWait": "soon", "pending": "y"}}
    assert printed(odd)[1].split()[0] == "x"


def test_json_holds_the_whole_status() -> None:
    stream = io.StringIO()
    print_tenants_json(Tenants([RESEARCH, NEW], NOW), stream)
    first, second = json.loads(stream.getvalue())
    assert first == {"name": "research", "cohort": "main", "status": RESEARCH["status"]}
    assert second == {"name": "new", "cohort": None, "status": {}}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (150, "2m30s"), (840, "14m")),
        *((10_799, "179m"), (10_800, "3h"), (12_000, "3h20m"), (86_400, "24h"), (172_800, "2d")),
        *((180_000, "2d2h"), (8 * 86_400, "8d"), (3 * 365 * 86_400, "3y")),
    ],
)
def test_ages_are_kubectls(seconds: int, text: str) -> None:
    assert age(seconds) == text
