# SPDX-License-Identifier: Apache-2.0
"""The reference page of rules, made from their list: `docs/reference/alerts.md`."""

from collections.abc import Iterator
from typing import Final

from reconciler.monitoring.catalog import alerts, records

_INTRO: Final = """\
# Alerts and recording rules

<!-- Made from reconciler/monitoring by `make generate`. -->

What to do about each alert: [../alerts.md](../alerts.md). Expressions are in
`manifests/alerts/sluice.rules.yaml`.

| alert | level | severity | for | summary |
| --- | --- | --- | --- | --- |
"""
_RECORDS: Final = """
| series | meaning |
| --- | --- |
"""


def render() -> str:
    """Return the page as Markdown."""
    return _INTRO + "\n".join(_alerts()) + "\n" + _RECORDS + "\n".join(_records()) + "\n"


def _alerts() -> Iterator[str]:
    for alert in alerts():
        link = f"[{alert.name}](../alerts.md#{alert.name.lower()})"
        cells = (link, alert.level, alert.severity, alert.hold, f"`{alert.summary}`")
        yield f"| {' | '.join(cells)} |"


def _records() -> Iterator[str]:
    for record in records():
        yield f"| `{record.name}` | {record.meaning} |"
