# SPDX-License-Identifier: Apache-2.0
"""A document against its kind's schema: every violation as a problem at the field at fault."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from jsonschema.protocols import Validator

from policies.documents.document import Document, Path, path_text
from policies.documents.field import Field, Subject
from policies.documents.kinds import LATER_FIELDS, LATER_KINDS, LATER_VALUES, Kind
from policies.documents.phrases import DURATION, PATTERNS, hint, phrase, shown
from policies.documents.problems import Problem
from policies.documents.schemas import Schema, Violation, violations
from policies.documents.suggest import did_you_mean
from policies.model.keys import API_VERSION

_MOST: Final = 50
"""So many violations of one document are listed; a hostile one could have millions."""
_LABEL_PART: Final = 63
_KINDS: Final = frozenset(map(str, Kind))
_KEEPS_VALUE: Final = frozenset(
    {"additionalProperties", "minProperties", "maxProperties", "x-kubernetes-list-type"}
)
"""Keywords whose violation leaves the rest of the value usable."""


def identify(document: Document) -> tuple[Kind | None, Problem | None]:
    """Return the document's kind, or what keeps it from having one."""
    root = Subject(document, _label(document)).root
    if not isinstance(document.value, dict):
        return None, root.problem(f"a document must be a mapping of fields, is {shown(root.value)}")
    kind, version = root.at("kind"), root.at("apiVersion")
    if kind.text() in _KINDS and version.exists:
        return Kind(kind.text()), None
    if kind.text() in LATER_KINDS:
        does = LATER_KINDS[kind.text()]
        return None, kind.problem(f"kind {kind.text()} ({does}) is not supported yet")
    if version.text() != API_VERSION:
        return None, _foreign(version)
    if not kind.exists:
        return None, kind.problem("is missing", f"write one of {', '.join(Kind)}")
    message = f"unknown kind {shown(kind.value)}; known are {', '.join(Kind)}"
    return None, kind.problem(message, did_you_mean(kind.text(), [*Kind, *LATER_KINDS]))


def _foreign(version: Field) -> Problem:
    if not version.exists:
        return version.problem("is missing", f"write {API_VERSION}")
    message = f"{shown(version.value)} is no Sluice document; only {API_VERSION} can be loaded here"
    return version.problem(message)


def check(document: Document, kind: Kind, validator: Validator) -> tuple[Subject, list[Problem]]:
    """Return the document ready to be compiled, and every violation of its schema."""
    label = _label(document)
    root = Subject(document, label).root
    problems: list[Problem] = []
    broken: set[Path] = set()
    for violation in islice(violations(validator, document.value), _MOST):
        problems += _problems(kind, _field(root, violation.path), violation)
        if violation.keyword == "required":
            broken.update((*violation.path, name) for name in violation.limit)
        elif violation.keyword not in _KEEPS_VALUE:
            broken.add(violation.path)
    return Subject(document, label, frozenset(broken)), problems[:_MOST]


def name_of(document: Document) -> str:
    """Return the name that a document of any kind gives itself, or nothing."""
    return Subject(document, "").root.at("metadata", "name").text()


def _label(document: Document) -> str:
    """Return `Kind/name` as far as the document says them."""
    kind = Subject(document, "").root.at("kind").text()
    return "/".join(part[:_LABEL_PART] for part in (kind, name_of(document)) if part)


def _field(root: Field, path: Path) -> Field:
    value: Any = root.value
    for step in path:
        value = value[step]
    return Field(root.subject, path, value)


def _problems(kind: Kind, field: Field, violation: Violation) -> Iterator[Problem]:
    keyword, limit, schema = violation.keyword, violation.limit, violation.schema
    match keyword:
        case "additionalProperties":
            yield from _unknown_fields(kind, field, schema)
        case "required":
            missing = [name for name in limit if name not in _keys(field)]
            yield from (field.at(name).problem("is missing") for name in missing)
        case "enum" if not isinstance(field.value, str):
            return  # its type is at fault, which is said already
        case "enum" if field.value in LATER_VALUES.get((kind, path_text(field.path)), ()):
            choices = ", ".join(limit)
            yield field.problem(f"{shown(field.value)} is not supported yet; there is {choices}")
        case "type" if schema.get("pattern") == DURATION and field.exists:
            message = f"must be {PATTERNS[DURATION]}, is {shown(field.value)}"
            yield field.problem(message, "write it with its unit, such as 30m")
        case "minProperties":
            yield field.problem(f"must have at least one of {', '.join(schema['properties'])}")
        case "maxProperties" if "properties" in schema:
            known = [name for name in _keys(field) if name in schema["properties"]]
            if len(known) > limit:  # else one is unknown, which is said already
                yield field.problem(f"must have only {limit} of {', '.join(known)}")
        case _:
            yield field.problem(
                phrase(keyword, limit, field.value), hint(keyword, limit, field.value)
            )


def _keys(field: Field) -> tuple[str, ...]:
    """Return the names that are written, also those without a value."""
    return tuple(field.value) if isinstance(field.value, dict) else ()


def _unknown_fields(kind: Kind, field: Field, schema: Schema) -> Iterator[Problem]:
    known = schema["properties"]
    unknown = [key for key in _keys(field) if key not in known]
    for key in unknown[:_MOST]:
        child = field.at(key)
        path = path_text(child.path)
        if (does := LATER_FIELDS[kind].get(path)) is not None:
            yield child.key_problem(f"is not supported yet ({does})")
        else:
            yield child.key_problem(
                "unknown field", did_you_mean(key, known) or f"known are {', '.join(known)}"
            )
