# SPDX-License-Identifier: Apache-2.0
"""A document's JSON Schema as the structural schema of a CustomResourceDefinition.

Limits, patterns, defaults and descriptions stay; how fine a number may be is left to Sluice, which
checks every object as it checks a file. Unknown fields are kept instead of dropped: what
the API server dropped, Sluice could not refuse by name, and a field that did nothing would be
worse than one that is refused. Source: apiextensions.k8s.io/v1 JSONSchemaProps.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from policies.documents.schemas import Schema

Object = dict[str, object]

KEEPS_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_NAME_WORDS: Final = ("type", "description", "minLength", "maxLength", "pattern", "enum")


def structural(schema: Schema, status: Mapping[str, object]) -> Object:
    """Return the schema of a whole object, with the `status` that only Sluice writes."""
    fields = schema["properties"]
    return {
        "description": schema["description"],
        "type": "object",
        "properties": {
            "apiVersion": _text(fields["apiVersion"]),
            "kind": _text(fields["kind"]),
            # Of metadata a definition may restrict the name alone; labels are the API server's.
            "metadata": {"type": "object", "properties": {"name": _name(fields["metadata"])}},
            "spec": convert(fields["spec"]),
            "status": dict(status),
        },
        "required": [name for name in schema["required"] if name == "spec"],
        KEEPS_UNKNOWN: True,
    }


def convert(schema: Schema) -> Object:
    """Return the schema of a value and of all below it."""
    converted: Object = {}
    for word, value in schema.items():
        match word:
            case "properties":
                converted[word] = {name: convert(field) for name, field in value.items()}
            case "items":
                converted[word] = convert(value)
            case "additionalProperties" if value is False:
                converted[KEEPS_UNKNOWN] = True
            case "additionalProperties":
                converted[word] = convert(value)
            # The API server takes the factor for whole numbers too, as a whole number: 0.
            case "multipleOf" if value != int(value):
                continue
            case _:
                converted[word] = _number(value)
    return converted


def _text(schema: Schema) -> Object:
    """Return a field whose only value the API server knows already."""
    return {"type": schema["type"], "description": schema["description"]}


def _name(metadata: Schema) -> Object:
    name = metadata["properties"]["name"]
    return {word: name[word] for word in _NAME_WORDS if word in name}


def _number(value: object) -> object:
    """Return a limit as YAML writes it; all of them are short decimals."""
    return float(value) if isinstance(value, Decimal) else value
