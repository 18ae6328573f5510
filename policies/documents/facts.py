# SPDX-License-Identifier: Apache-2.0
"""Facts of a cluster from a file: what watches give where there is a cluster.

The file is what `kubectl get nodes,namespaces,tenants -o yaml` prints, with `now` beside `items`
if the time is to be fixed; of tenants only what they use is read. Fields that Sluice does not look
at are left alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from policies.documents.composer import Limits
from policies.documents.field import Field, Subject
from policies.documents.kubernetes_names import is_qualified_name
from policies.documents.phrases import hint, shown
from policies.documents.problems import Problem, Severity, has_errors, ordered, quoted
from policies.documents.scalars import plain
from policies.documents.source import SourceText, parse_documents
from policies.documents.suggest import did_you_mean
from policies.documents.times import parse_time
from policies.documents.usage import tenant_usage
from policies.model.facts import ClusterFacts, Facts, NamespaceFacts, NodeFacts
from policies.model.keys import NAMESPACE_NAME_LABEL
from policies.model.quantity import QuantityError, parse_quantity
from policies.model.usage import TenantUsage
from policies.vendors import Catalog

LIMITS: Final = Limits(size_bytes=64 * 1024 * 1024, values=5_000_000)
"""Nodes as kubectl prints them are long: 10 kB and more for each."""

_TOP: Final = ("apiVersion", "kind", "metadata", "items", "now")
_MOST: Final = 50


@dataclass(slots=True)
class _Gathered:
    """What the lists of one file hold. `nodes` are None until there is one."""

    catalog: Catalog
    namespaces: dict[str, NamespaceFacts] = field(default_factory=dict)
    nodes: dict[str, NodeFacts] | None = None
    usage: dict[str, TenantUsage] = field(default_factory=dict)
    now: datetime | None = None
    problems: list[Problem] = field(default_factory=list)


def parse_facts(
    source: SourceText, *, catalog: Catalog, now: datetime
) -> tuple[Facts | None, tuple[Problem, ...]]:
    """Return the facts, None if there is an Error; `now` is the time if the file has none.

    A file without any Node leaves nodes unknown. Never raises, whatever the text.
    """
    parsed = parse_documents(source, LIMITS)
    gathered = _Gathered(catalog, problems=list(parsed.problems))
    for document in parsed.documents:
        _list(gathered, Subject(document, "List").root)
    if not parsed.documents and not parsed.problems:
        message = "empty; facts are a Kubernetes List of Nodes and Namespaces"
        gathered.problems.append(Problem(Severity.ERROR, message, source.name, 1, 1))
    problems = ordered(gathered.problems)[:_MOST]
    if has_errors(gathered.problems):
        return None, problems
    nodes = None if gathered.nodes is None else tuple(gathered.nodes.values())
    cluster = ClusterFacts(gathered.namespaces, nodes)
    return Facts(cluster, gathered.now or now, usage=gathered.usage), problems


def _list(gathered: _Gathered, root: Field) -> None:
    if root.at("kind").text() != "List":
        message = f"facts are a Kubernetes List; this is {shown(root.at('kind').value)}"
        gathered.problems.append(root.problem(message))
        return
    gathered.problems += [
        entry.key_problem("unknown field", did_you_mean(key, _TOP))
        for key, entry in root.entries()
        if key not in _TOP
    ]
    items = root.at("items")
    if not isinstance(items.value, list):
        gathered.problems.append(items.problem("must be a list of Nodes and Namespaces"))
    if root.at("now").exists:
        _now(gathered, root.at("now"))
    for item in items.items():
        _item(gathered, item)


def _now(gathered: _Gathered, field: Field) -> None:
    time = parse_time(field.text())
    if time is None:
        message = f"{shown(field.value)} is no RFC 3339 time, such as 2031-12-12T08:00:00Z"
        gathered.problems.append(field.problem(message))
    elif gathered.now is not None:
        gathered.problems.append(field.problem("now is written twice"))
    gathered.now = time


def _item(gathered: _Gathered, item: Field) -> None:
    kind, name = item.at("kind").text(), item.at("metadata", "name")
    if kind == "Tenant":
        value = plain(item.value)
        found = tenant_usage(value) if isinstance(value, dict) else None
        gathered.usage |= (found,) if found is not None else ()
        return
    if kind not in ("Node", "Namespace"):
        message = f"ignored: a {shown(item.at('kind').value)} is no fact that Sluice looks at"
        gathered.problems.append(item.problem(message, severity=Severity.WARNING))
        return
    if not name.text():
        gathered.problems.append(name.problem("must be a name"))
        return
    labels = _texts(gathered, item.at("metadata", "labels"))
    known: object = gathered.namespaces if kind == "Namespace" else gathered.nodes or {}
    if isinstance(known, dict) and name.text() in known:
        gathered.problems.append(name.problem(f"{kind} {quoted(name.text())} is there twice"))
    if kind == "Namespace":
        annotations = _texts(gathered, item.at("metadata", "annotations"))
        # The API server sets this label on every namespace.
        labels.setdefault(NAMESPACE_NAME_LABEL, name.text())
        gathered.namespaces[name.text()] = NamespaceFacts(name.text(), labels, annotations)
    else:
        gathered.nodes = gathered.nodes if gathered.nodes is not None else {}
        allocatable = dict(_allocatable(gathered, item.at("status", "allocatable")))
        gathered.nodes[name.text()] = NodeFacts(name.text(), labels, allocatable)


def _texts(gathered: _Gathered, field: Field) -> dict[str, str]:
    """Return labels or annotations; what is no text the API server would not hold."""
    if field.exists and not isinstance(field.value, dict):
        gathered.problems.append(field.problem("must be a mapping of texts"))
    for key, entry in field.entries():
        if not isinstance(entry.value, str):
            message = f"must be text, is {shown(entry.value)}"
            gathered.problems.append(entry.problem(message, hint("type", "string", entry.value)))
        elif not is_qualified_name(key):
            gathered.problems.append(entry.key_problem(f"{quoted(key)} is no label key"))
    return field.text_map()


def _allocatable(gathered: _Gathered, field: Field) -> Iterator[tuple[str, int]]:
    """Yield the GPUs that a node can hold; other resources do not matter here."""
    if field.exists and not isinstance(field.value, dict):
        gathered.problems.append(field.problem("must be a mapping of resource names"))
    for name, entry in field.entries():
        if gathered.catalog.classify(name) is None:
            continue
        try:
            count = parse_quantity(plain(entry.value))
        except QuantityError as error:
            gathered.problems.append(entry.problem(str(error)))
            continue
        if count < 0 or count.denominator != 1:
            message = f"{quoted(name)} counts devices: {shown(entry.value)} is no whole number"
            gathered.problems.append(entry.problem(message))
            continue
        yield name, int(count)
