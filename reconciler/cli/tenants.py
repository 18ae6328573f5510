# SPDX-License-Identifier: Apache-2.0
"""`sluice tenants`: how tenants stand, from the status of their objects."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TextIO

from rich.console import Console
from rich.table import Table

from reconciler.cli.reading import Object, everything
from reconciler.cli.terminal import CommandError, age
from reconciler.kube import raw
from reconciler.kube.client import Client
from reconciler.kube.errors import NotFoundError
from reconciler.kube.resources import Selection
from reconciler.tenants.actuate import TENANTS
from reconciler.tenants.view import CONDITIONS

_TEXTS: Final = ("guarantee", "ceiling", "used", "borrowed")
_WIDE: Final = ("lent", "owed")
_NO_LIMIT: Final = "-"
_UNKNOWN: Final = "?"


@dataclass(frozen=True, slots=True)
class Tenants:
    """The objects in name order, and the cluster's time in Unix seconds."""

    items: Sequence[Object]
    now: int


async def read_tenants(client: Client) -> Tenants:
    """Read all tenants. Raises ApiError, and CommandError where none can be."""
    try:
        items = await everything(client, Selection(TENANTS))
    except NotFoundError as error:
        raise CommandError("the cluster serves no tenants: install Sluice's kinds first") from error
    now = client.server_time()
    items.sort(key=lambda item: raw.text(raw.mapping(item, "metadata"), "name"))
    return Tenants(items, int(now or 0))


def print_tenants(found: Tenants, console: Console, *, wide: bool = False) -> None:
    """Print a table like that of `kubectl get tenants`, and below it what is wrong.

    `-` is no limit, `?` what no leader of Sluice has said yet.
    """
    texts = (*_TEXTS, *_WIDE) if wide else _TEXTS
    heads = [*(text.upper() for text in texts), "PENDING", "OLDEST WAIT"]
    table = Table("NAME", *heads, box=None, pad_edge=False, header_style="bold")
    for item in found.items:
        table.add_row(_name(item), *_cells(raw.mapping(item, "status"), texts, found.now))
    console.print(table)
    for item in found.items:
        for told in _wrong(item):
            console.print(f"{_name(item)}: {told}", markup=False, highlight=False)


def print_tenants_json(found: Tenants, stream: TextIO) -> None:
    """Print a list of names, cohorts and statuses."""
    plain = [
        {
            "name": _name(item),
            "cohort": raw.text(raw.mapping(item, "spec"), "cohort") or None,
            "status": raw.mapping(item, "status"),
        }
        for item in found.items
    ]
    json.dump(plain, stream, indent=2)
    stream.write("\n")


def _cells(status: Object, texts: Sequence[str], now: int) -> list[str]:
    if "used" not in status:
        return [_UNKNOWN] * (len(texts) + 1) + [""]
    missing = {"ceiling": _NO_LIMIT}
    cells = [raw.text(status, text) or missing.get(text, "0") for text in texts]
    return [*cells, str(status.get("pending", 0)), _since(raw.text(status, "oldestWait"), now)]


def _since(text: str, now: int) -> str:
    try:
        return age(now - int(datetime.fromisoformat(text).timestamp())) if text else ""
    except ValueError:
        return _UNKNOWN


def _wrong(item: Mapping[str, object]) -> list[str]:
    conditions = raw.mappings(raw.mapping(item, "status"), "conditions")
    return [
        f"{raw.text(condition, 'type')}: {raw.text(condition, 'message')}"
        for condition in conditions
        if condition.get("type") in CONDITIONS and condition.get("status") == "True"
    ]


def _name(item: Object) -> str:
    return raw.text(raw.mapping(item, "metadata"), "name")
