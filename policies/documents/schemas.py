# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of the documents, and validators that read them as the API server would.

Schemas keep to what a CustomResourceDefinition may hold (no $ref, const or uniqueItems), so lists
say `x-kubernetes-list-type` and this module checks it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from policies.documents.document import Path
from policies.documents.kinds import Kind

Schema = Mapping[str, Any]

LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
INT_OR_STRING = "x-kubernetes-int-or-string"


@dataclass(frozen=True, slots=True)
class Violation:
    """A keyword of the schema with its limit, the path of the value that breaks it, and where."""

    keyword: str
    limit: Any
    path: Path
    schema: Schema


def read_schema(kind: Kind) -> Schema:
    """Return the schema of a kind; its numbers are int or Decimal."""
    file = resources.files("policies.documents").joinpath("schema", f"{kind.lower()}.json")
    schema: Schema = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    return schema


def build_validators() -> Mapping[Kind, Validator]:
    """Return one validator for each kind; build them once for each load, not for each document."""
    extended: Callable[..., Any] = extend  # the stubs leave it untyped
    validator = extended(
        Draft202012Validator,
        {
            "pattern": _pattern,
            "multipleOf": _multiple_of,
            LIST_TYPE: _list_type,
            INT_OR_STRING: _int_or_string,
        },
    )
    return {kind: validator(read_schema(kind)) for kind in Kind}


def violations(validator: Validator, value: Any) -> Iterator[Violation]:
    """Yield every violation of a schema, in the order in which the schema is walked."""
    for error in validator.iter_errors(value):
        path = tuple(error.absolute_path)
        schema = error.schema if isinstance(error.schema, dict) else {}
        yield Violation(str(error.validator), error.validator_value, path, schema)


def _pattern(
    _validator: Validator, pattern: str, instance: object, schema: Schema
) -> Iterator[ValidationError]:
    """Match the whole text: Python's `$` also matches before a line break at the end.

    A text of a length that is at fault already is left: it may take long to match.
    """
    length = len(instance) if isinstance(instance, str) else -1
    if not schema.get("minLength", 0) <= length <= schema["maxLength"]:
        return
    if re.fullmatch(pattern, str(instance), re.ASCII) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _multiple_of(
    _validator: Validator, factor: Decimal, instance: object, _schema: Schema
) -> Iterator[ValidationError]:
    """Divide exactly, whatever the size."""
    if isinstance(instance, bool) or not isinstance(instance, int | Decimal):
        return
    if Fraction(instance) % Fraction(factor):
        yield ValidationError(f"{instance} is not a multiple of {factor}")


def _int_or_string(
    _validator: Validator, _enabled: bool, instance: object, _schema: Schema
) -> Iterator[ValidationError]:
    """Demand what a Kubernetes quantity may be; the schema can give it no type."""
    if isinstance(instance, bool) or not isinstance(instance, int | str):
        yield ValidationError(f"{instance!r} is neither a number nor text")


def _list_type(
    _validator: Validator, list_type: str, instance: object, schema: Schema
) -> Iterator[ValidationError]:
    """Refuse an item whose value (set) or key fields (map) an earlier item has."""
    if not isinstance(instance, list):
        return
    seen: set[tuple[str, ...]] = set()
    for index, item in enumerate(instance):
        key = _list_key(item, list_type, schema)
        if key is not None and key in seen:
            yield ValidationError(f"item {index} is there twice", path=(index,), instance=item)
        elif key is not None:
            seen.add(key)


def _list_key(item: object, list_type: str, schema: Schema) -> tuple[str, ...] | None:
    """Return what must be unique of an item; None if it is not well-formed, which others find."""
    parts = [item]
    if list_type == "map":
        parts = [
            item.get(name) if isinstance(item, dict) else None for name in schema[LIST_MAP_KEYS]
        ]
    texts = tuple(part for part in parts if isinstance(part, str))
    return texts if len(texts) == len(parts) else None
