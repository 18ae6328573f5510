# SPDX-License-Identifier: Apache-2.0
"""What a leader is about to do to pods, as its Lease carries it to whoever leads next.

Pure: values to and from the text of one annotation. When to declare and how a successor settles
what it inherits is not decided here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import orjson

from policies.model.keys import STATE_PREFIX

INTENTS: Final = f"{STATE_PREFIX}intents"
"""Annotation of the Lease: the declared intents."""

MAX_INTENTS: Final = 500
"""How many one declaration may hold."""

MAX_BYTES: Final = 240 * 1024
"""How long its text may be: all annotations of an object share 256 KiB, and others have some too.

Source: apimachinery `pkg/api/validation/objectmeta.go` (TotalAnnotationSizeLimitB).
"""

_VERSION: Final = 1
_FIELDS: Final = 6


class IntentKind(StrEnum):
    """What is intended: the release of a gated pod, or the eviction of a running one."""

    RELEASE = "release"
    EVICTION = "eviction"


@dataclass(frozen=True, slots=True)
class Intent:
    """One conditional write to one pod.

    `version` is the resourceVersion that the write's precondition names; `charge` the compact JSON
    of the charge, empty for evictions.
    """

    kind: IntentKind
    namespace: str
    name: str
    uid: str
    version: str
    charge: str = ""


class UnreadableIntentsError(ValueError):
    """An annotation that no leader of this version has written."""


def encode_intents(intents: Sequence[Intent]) -> str:
    """Return the annotation's text. Raises ValueError where one declaration cannot hold them."""
    if len(intents) > MAX_INTENTS:
        raise ValueError(f"{len(intents)} intents are more than {MAX_INTENTS}")
    text = orjson.dumps({"v": _VERSION, "intents": [_row(intent) for intent in intents]})
    if len(text) > MAX_BYTES:
        raise ValueError(f"{len(intents)} intents need {len(text)} bytes, more than {MAX_BYTES}")
    return text.decode()


def decode_intents(text: str) -> tuple[Intent, ...]:
    """Return what `encode_intents` was given. Raises UnreadableIntentsError."""
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UnreadableIntentsError(f"no JSON: {error}") from error
    version = content.get("v") if isinstance(content, dict) else None
    if version != _VERSION:
        raise UnreadableIntentsError(f"version {version!r} is not {_VERSION}")
    rows = content.get("intents")
    if not isinstance(rows, list):
        raise UnreadableIntentsError("it has no list of intents")
    return tuple(_intent(row) for row in rows)


def count_fitting(intents: Sequence[Intent]) -> int:
    """Return how many of these, from the first on, one declaration can hold."""
    left = MAX_BYTES - len(encode_intents(()))
    for count, intent in enumerate(intents[:MAX_INTENTS]):
        left -= len(orjson.dumps(_row(intent))) + (1 if count else 0)
        if left < 0:
            return count
    return min(len(intents), MAX_INTENTS)


def _row(intent: Intent) -> tuple[str, ...]:
    """Fields without their names: at 500 pods the names would be a quarter of the text."""
    return (
        str(intent.kind),
        intent.namespace,
        intent.name,
        intent.uid,
        intent.version,
        intent.charge,
    )


def _intent(row: object) -> Intent:
    if not isinstance(row, list) or not all(isinstance(field, str) for field in row):
        raise UnreadableIntentsError("an intent that is no list of strings")
    if len(row) != _FIELDS:
        raise UnreadableIntentsError(f"an intent of {len(row)} fields, not {_FIELDS}")
    try:
        return Intent(IntentKind(row[0]), *row[1:])
    except ValueError as error:
        raise UnreadableIntentsError(str(error)) from error
