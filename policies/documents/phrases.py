# SPDX-License-Identifier: Apache-2.0
"""What each JSON Schema keyword is called when a value breaks it, in words people understand."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from policies.documents.problems import quoted
from policies.documents.suggest import did_you_mean
from policies.model.quantity import QuantityError, parse_quantity

_TYPES: Final = {
    "object": "a mapping of fields",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_DNS: Final = "lower-case letters, digits"
_STEP: Final = r"[A-Za-z_][A-Za-z0-9_-]*(\[\*\])?"
DURATION: Final = r"^([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
PATTERNS: Final[Mapping[str, str]] = {
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$": (
        f"{_DNS}, '-' and '.', with a letter or digit at each end (a DNS-1123 name)"
    ),
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": (
        f"{_DNS} and '-', with a letter or digit at each end (a DNS-1123 label)"
    ),
    r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": (
        "letters, digits, '-', '_' and '.', with a letter or digit at each end"
    ),
    r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$": (
        "a label value: letters, digits, '-', '_' and '.', with a letter or digit at each end"
    ),
    r"^[A-Za-z_][A-Za-z0-9_]*$": "a CEL identifier: letters, digits and '_', no digit first",
    r"^[-a-z0-9.*?!\[\]]+$": (
        f"a profile's name or a pattern: {_DNS}, '-', '.', '*', '?' and [...]"
    ),
    r"^[-._a-zA-Z][-._a-zA-Z0-9]*$": (
        "an environment variable's name: letters, digits, '_', '-' and '.', no digit first"
    ),
    DURATION: "a duration such as 30m, 1h30m or 90s",
    r"^[A-Z][A-Za-z0-9]*$": "a capital letter, then letters and digits, such as Job",
    rf"^{_STEP}(\.(\*|{_STEP}))*$": (
        "a path such as spec.template, spec.groups[*].template or spec.replicaSpecs.*.template"
    ),
    rf"^{_STEP}(\.(\*|{_STEP}))*( - [1-9][0-9]{{0,2}})?$": (
        "the path of a number, such as spec.replicas, or less some of it, such as spec.size - 1"
    ),
}
_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "n"})


def phrase(keyword: str, limit: Any, value: object) -> str:
    """Return what is wrong with a value that breaks a keyword of the schema with this limit."""
    match keyword:
        case "type":
            return f"must be {_TYPES[limit]}, is {shown(value)}"
        case "enum" if len(limit) == 1:
            return f"must be {quoted(limit[0])}, is {shown(value)}"
        case "enum":
            return f"must be one of {', '.join(limit)}; is {shown(value)}"
        case "pattern":
            return f"must be {PATTERNS[limit]}; is {shown(value)}"
        case "minimum":
            return f"must be at least {limit}, is {value}"
        case "maximum":
            return f"must be at most {limit}, is {value}"
        case "multipleOf":
            places = len(str(limit).partition(".")[2])
            return f"must have at most {places} decimal places, is {value}"
        case "x-kubernetes-int-or-string":
            return f"must be a quantity such as 8Gi, is {shown(value)}"
    return _count_phrase(keyword, limit, value)


def _count_phrase(keyword: str, limit: Any, value: object) -> str:
    match keyword:
        case "minLength":
            return "must not be empty"
        case "maxLength":
            return f"must have at most {limit} characters, has {len(str(value))}"
        case "minItems":
            return "must have at least one item"
        case "maxItems":
            count = len(value) if isinstance(value, list) else 0
            return f"must have at most {limit} items, has {count}"
        case "minProperties":
            return "must have at least one field"
        case "maxProperties":
            count = len(value) if isinstance(value, dict) else 0
            return f"must have at most {limit} fields, has {count}"
        case "x-kubernetes-list-type":
            name = value.get("name", value.get("kind")) if isinstance(value, dict) else value
            return f"{shown(name)} is in this list twice"
    raise NotImplementedError(keyword)


def hint(keyword: str, limit: Any, value: object) -> str | None:
    """Return what to write instead, where that can be told."""
    if keyword == "enum" and isinstance(value, str):
        return did_you_mean(value, limit) if len(limit) > 1 else None
    if value is None:
        return "give it a value, or leave the field out"
    if keyword != "type":
        return None
    if limit == "string":
        return f"put it in quotes: {quoted(_json_text(value))}" if _is_scalar(value) else None
    return _type_hint(limit, value) if isinstance(value, str) else None


def _type_hint(wanted: str, text: str) -> str | None:
    if wanted == "boolean":
        choice = "true" if text.lower() in _TRUE else "false" if text.lower() in _FALSE else None
        return choice and _write(choice, text)
    if wanted in ("integer", "number"):
        return _number_hint(wanted, text)
    return "write it as a list: [...]" if wanted == "array" else None


def _number_hint(wanted: str, text: str) -> str | None:
    """Read what was meant by "8", 010, 1_000 or 500m."""
    try:
        number = parse_quantity(text.replace("_", ""))
    except QuantityError:
        return None
    milli = number * 1000
    if milli.denominator != 1 or (wanted == "integer" and number.denominator != 1):
        return None
    return _write(f"{Decimal(milli.numerator) / 1000:f}", text)


def _write(meant: str, text: str) -> str:
    return f"write {meant} without quotes" if meant == text else f"write {meant}"


def shown(value: object) -> str:
    """Return a value as a message names it, short."""
    if value is None:
        return "empty"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    return _json_text(value)


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | Decimal)


def _json_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
