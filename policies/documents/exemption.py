# SPDX-License-Identifier: Apache-2.0
"""Kind `Exemption`: from the document to the value."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from policies.documents.compiled import Compiled
from policies.documents.field import Field, Subject
from policies.documents.labels import compile_selector, selector_problems
from policies.documents.phrases import shown
from policies.documents.problems import Problem, Severity
from policies.documents.times import parse_time
from policies.model.exemption import Exemption

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
"""Stands for a time that cannot be read; such a document is not served."""


def compile_exemption(subject: Subject, now: datetime | None) -> Compiled[Exemption]:
    """Return the exemption. Where the time is known, one that has ended is a Warning."""
    root = subject.root
    spec, match = root.at("spec"), root.at("spec", "match")
    exemption = Exemption(
        name=root.at("metadata", "name").text(),
        policies=frozenset(spec.at("policies").texts()),
        reason=spec.at("reason").text(),
        expires_at=parse_time(spec.at("expiresAt").text()) or _NEVER,
        tenants=match.at("tenants").optional_set(),
        namespaces=match.at("namespaces").optional_set(),
        users=match.at("users").optional_set(),
        labels=compile_selector(match.at("labels")) if match.at("labels").exists else None,
    )
    problems = (*_problems(spec, exemption), *_time_problems(spec.at("expiresAt"), now))
    return Compiled(exemption, root, problems)


def _problems(spec: Field, exemption: Exemption) -> Iterator[Problem]:
    reason, labels = spec.at("reason"), spec.at("match", "labels")
    if reason.exists and not exemption.reason.strip():
        yield reason.problem("must not be empty")
    yield from selector_problems(labels)
    others = (exemption.tenants, exemption.namespaces, exemption.users)
    spares_all = exemption.labels is not None and not exemption.labels.expressions
    if spares_all and not any(others) and spec.at("match").is_sound:
        yield labels.problem("an empty selector alone would spare every pod")


def _time_problems(field: Field, now: datetime | None) -> Iterator[Problem]:
    if not field.exists:
        return
    time = parse_time(field.text())
    if time is None:
        message = f"{shown(field.value)} is no RFC 3339 time with a zone"
        yield field.problem(message, "write it as 2031-12-12T00:00:00Z")
    elif now is not None and time <= now:
        message = "has passed: the exemption counts no longer and only makes a warning"
        yield field.problem(message, "take it out, or extend it", Severity.WARNING)
