# SPDX-License-Identifier: Apache-2.0
"""The reference page of the documents, made from their schemas: `docs/reference/policies.md`.

`python -m policies.documents.reference` prints it.
"""

import sys
from collections.abc import Iterator
from typing import Any, Final

from policies.documents.kinds import LATER_FIELDS, LATER_KINDS, LATER_VALUES, Kind
from policies.documents.phrases import DURATION
from policies.documents.schemas import INT_OR_STRING, Schema, read_schema
from policies.model.keys import API_VERSION

_INTRO: Final = f"""\
# Policy documents

<!-- Made from policies/documents/schema/ by `python -m policies.documents.reference`. -->

Documents are YAML or JSON files of `apiVersion: {API_VERSION}`, one document or many in each.
Scalars are read as JSON's are: only `true`, `false`, `null` and JSON's numbers mean something when
written without quotes; `yes`, `on`, `010` and dates are text. Anchors and aliases work, merge keys
(`<<`) and tags do not. A field that is unknown, written twice or without a value is an error.
Durations are whole hours, minutes and seconds: `30m`, `1h30m`, `90s`.
All documents are loaded together or not at all, and every error is reported with its place.
"""
_TYPES: Final = {
    "array": "list",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "decimal",
    "object": "fields",
    "string": "text",
}
_UNBOUNDED: Final = 2**63 - 1
"""The bound that Kubernetes sets anyhow, not worth a word."""
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"


def render() -> str:
    """Return the page as Markdown."""
    parts = [_INTRO, *(_kind(kind) for kind in Kind), _later_kinds()]
    return "\n".join(parts)


def _kind(kind: Kind) -> str:
    schema = read_schema(kind)
    rows = "\n".join(_rows("", schema, skip=("apiVersion", "kind")))
    later = "".join(f"- `{path}`: {does}\n" for path, does in _later(kind))
    return (
        f"## {kind}\n\n{schema['description']}\n\n"
        "| field | value | meaning |\n| --- | --- | --- |\n"
        f"{rows}\n" + (f"\nNot supported yet:\n\n{later}" if later else "")
    )


def _later(kind: Kind) -> Iterator[tuple[str, str]]:
    yield from sorted(LATER_FIELDS[kind].items())
    for (of, path), values in LATER_VALUES.items():
        if of is kind:
            yield path, ", ".join(f"`{value}`" for value in sorted(values))


def _later_kinds() -> str:
    rows = "".join(f"- `{kind}` {does}\n" for kind, does in sorted(LATER_KINDS.items()))
    return f"## Kinds that are not supported yet\n\n{rows}"


def _rows(path: str, schema: Schema, skip: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a table row for each field below this one, depth first as the schema has them."""
    for name, field in schema.get("properties", {}).items():
        if name in skip:
            continue
        here = f"{path}.{name}" if path else name
        marks = [_value(field)]
        if name in schema.get("required", ()):
            marks.append("**required**")
        if "default" in field:
            marks.append(f"default `{_json(field['default'])}`")
        yield f"| `{here}` | {'; '.join(marks)} | {_cell(field['description'])} |"
        yield from _rows(*_below(here, field))


def _below(here: str, field: Schema) -> tuple[str, Schema]:
    """Return where the fields of a list's items, of a map's entries, or of the field stand."""
    if "items" in field:
        return f"{here}[]", field["items"]
    entries = field.get("additionalProperties")
    return (f"{here}.<name>", entries) if isinstance(entries, dict) else (here, field)


def _value(field: Schema) -> str:
    """Return in words what may be written."""
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if INT_OR_STRING in field:
        return "quantity"
    if field["type"] == "array":
        return f"list of {_value(field['items'])}"
    if field.get("pattern") == DURATION:
        return "duration"
    if field["type"] != "object":
        return _TYPES[field["type"]] + _bounds(field)
    if isinstance(field.get("additionalProperties"), dict):
        return f"map of {_value(field['additionalProperties'])}"
    return "any fields" if field.get(_OPEN) else _TYPES["object"]


def _bounds(field: Schema) -> str:
    low, high = field.get("minimum"), field.get("maximum")
    if low is None:
        return ""
    return f" from {low}" + (f" to {high}" if high is not None and high < _UNBOUNDED else "")


def _json(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(render())
