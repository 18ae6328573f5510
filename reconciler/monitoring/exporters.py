# SPDX-License-Identifier: Apache-2.0
"""PromQL that gives exporters' metrics the same names, labels and units.

What exporters call things is data of policies.telemetry; nothing of it is repeated here.
"""

from collections.abc import Iterable
from typing import Final

from policies.telemetry.names import Exporter, Metric, exporters
from policies.telemetry.quantities import Quantity, limits

CARD: Final = ("node", "card", "mig")
"""Labels of a card: `card` is its UUID, else its index; `mig` the instance, if it is one."""
WORKLOAD: Final = (*CARD, "namespace", "pod", "own")
"""Labels of a card in a pod's hands. `own` is `yes` where that is the exporter's own pod, which a
Prometheus that does not honour an exporter's labels gives idle cards."""


def measured(quantity: Quantity, by: tuple[str, ...] = CARD) -> str:
    """Return the PromQL of a quantity in its own unit by these labels.

    Where a card has several metrics of it, the one that is preferred counts. What cannot have been
    measured (NaN, sentinels) is left out. Values that are told of several pods of a card are taken
    for the card's: the highest.
    """
    found = (
        _converted(exporter, metric, by)
        for exporter in exporters()
        for metric in exporter.metrics
        if metric.quantity is quantity
    )
    return "\nor\n".join(found)


def _converted(exporter: Exporter, metric: Metric, by: tuple[str, ...]) -> str:
    value = _labelled(exporter, _plausible(exporter, metric), by)
    return f"max by ({', '.join(by)}) (\n{value}\n){_times(metric.factor)}"


def _times(factor: float) -> str:
    """Return what brings a value to its unit; by division, since a fraction would be rounded."""
    if factor == 1:
        return ""
    return f" / {1 / factor:.12g}" if factor < 1 else f" * {factor:.12g}"


def _plausible(exporter: Exporter, metric: Metric) -> str:
    """Select what can have been measured; both comparisons are false of NaN."""
    low, high = (limit / metric.factor for limit in limits(metric.quantity))
    selector = metric.name
    if metric.whole_cards_only and exporter.labels.instance:
        matchers = ",".join(f'{name}=""' for name in exporter.labels.instance)
        selector = f"{metric.name}{{{matchers}}}"
    return f"({selector} >= {low:.12g} <= {high:.12g})"


def _labelled(exporter: Exporter, value: str, by: tuple[str, ...]) -> str:
    labels = exporter.labels
    value = _first(value, "node", labels.node)
    value = _first(value, "card", (*labels.uuid, *labels.index))
    value = _first(value, "mig", labels.instance)
    if "pod" not in by or not labels.pod:
        return value
    value = _first(value, "namespace", labels.namespace)
    value = _first(value, "pod", labels.pod)
    value = _first(value, "container", labels.container)
    own = "|".join(labels.own_containers)
    # In a label of its own: were the pod's taken away, series could become the same.
    return f'label_replace({value}, "own", "yes", "container", "{own}")'


def _first(value: str, label: str, names: Iterable[str]) -> str:
    """Give a label the value of the first of these that a series has."""
    names = tuple(names)
    if not names or names == (label,):
        return value
    joined = ", ".join(f'"{name}"' for name in names)
    value = f'label_join(\n{value},\n"joined", "|", {joined})'
    return rf'label_replace({value}, "{label}", "$1", "joined", "\\|*([^|]+).*")'
