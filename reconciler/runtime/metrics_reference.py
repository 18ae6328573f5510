# SPDX-License-Identifier: Apache-2.0
"""The reference page of the metrics, made from their list: `docs/reference/metrics.md`.

`python -m reconciler.runtime.metrics_reference` prints it.
"""

import sys
from collections.abc import Iterator
from typing import Final

from reconciler.runtime.metric_specs import METRICS, MetricSpec

_INTRO: Final = """\
# Metrics

<!-- Made from reconciler/runtime/metric_specs.py by
     `python -m reconciler.runtime.metrics_reference`. -->

Served at `/metrics` in the Prometheus text format, or OpenMetrics where the scraper asks for it.
Label values come from enumerations, or are names of policies and profiles: no tenant can add
series. The process metrics of the Prometheus client (`process_*`) are served beside them.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
"""


def render() -> str:
    """Return the page as Markdown."""
    return _INTRO + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    for spec in METRICS:
        yield f"| `{spec.name}` | {spec.kind} | {_labels(spec)} | {spec.help} |"


def _labels(spec: MetricSpec) -> str:
    return ", ".join(f"`{label}`" for label in spec.labels)


if __name__ == "__main__":
    sys.stdout.write(render())
