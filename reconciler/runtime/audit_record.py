# SPDX-License-Identifier: Apache-2.0
"""What the audit log says of one decision, as one line of JSON.

No secrets: values are taken over from a patch only where they are known to be harmless, and what
users wrote is cut in length. JSON escapes line breaks, so that no name can forge a line.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import orjson

from policies.model.decision import Decision
from policies.model.keys import STATE_PREFIX, USER_PREFIX, VISIBLE_DEVICES, VOID
from policies.model.request import JsonObject, Request
from policies.model.settings import Mode

_MAX_TEXT: Final = 256
_MAX_MESSAGE: Final = 1024
_REDACTED: Final = "[redacted]"
_OPTIONS: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
_CONTAINER: Final = r"/spec/(?:containers|initContainers|ephemeralContainers)/[^/]+"
_HARMLESS_PATH: Final = re.compile(
    rf"(?:/spec/(?:affinity|nodeSelector|schedulingGates|tolerations)|{_CONTAINER}/resources)(?:/|$)"
    r"|/metadata/annotations/(?:state\.)?sluice\.dev~1"
)
"""Places of GPU resources and placement, and of annotations that are ours (keys.py)."""
_VARIABLE_PATH: Final = re.compile(rf"{_CONTAINER}/env(?:/[^/]+(?:/value)?)?")


class UnserializableError(Exception):
    """A decision that cannot be written as JSON; the message says why."""


class AuditEntry(NamedTuple):
    """A decision and how it was answered: `allowed` and `warnings` are what the user got.

    `at` is in UTC.
    """

    request: Request
    decision: Decision
    mode: Mode
    allowed: bool
    warnings: Sequence[str]
    at: datetime
    duration_us: int


def to_line(entry: AuditEntry) -> bytes:
    """Return the line with its line feed. Raises UnserializableError."""
    record = _record(entry)
    try:
        return orjson.dumps(record, option=_OPTIONS)
    except TypeError:
        return _to_line_slowly(record)


def _to_line_slowly(record: Mapping[str, object]) -> bytes:
    """Serialize what orjson refuses: integers above 64 bits, very deep values."""
    try:
        text = json.dumps(record, separators=(",", ":"), default=_rfc3339)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnserializableError(str(error)) from error
    return text.encode() + b"\n"


def _record(entry: AuditEntry) -> dict[str, object]:
    request, decision = entry.request, entry.decision
    metadata = _metadata(request)
    return {
        "time": entry.at,
        "uid": _cut(request.uid),
        "phase": request.phase,
        "user": _cut(request.user.username),
        "namespace": _cut(request.namespace),
        "name": _cut(request.name or metadata.get("name")),
        "generateName": _cut(metadata.get("generateName")),
        "owner": _owner(metadata),
        "operation": request.operation,
        "resource": _resource(request),
        "dryRun": request.dry_run,
        "mode": entry.mode,
        "generation": decision.generation,
        "tenant": decision.tenant,
        "matched": decision.matched,
        "policy": decision.policy,
        "profile": decision.profile,
        "exclusive": decision.exclusive,
        "verdict": decision.verdict,
        "allowed": entry.allowed,
        "reasons": decision.reasons if decision.violations else (),
        "message": _cut(decision.message, _MAX_MESSAGE) if decision.violations else None,
        "asked": decision.asked,
        "given": decision.given,
        "chargeMilli": decision.charge_milli,
        "patch": redact(decision.patch),
        "warnings": entry.warnings,
        "staleSeconds": decision.stale_seconds,
        "durationUs": entry.duration_us,
    }


def redact(patch: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return patch operations (RFC 6902) without values that may be somebody's secret.

    Kept are GPU resources, placement, our own annotations and the variables that we set.
    """
    harmless = _HARMLESS_PATH.match
    return [
        operation if harmless(str(operation["path"])) else _redact(operation) for operation in patch
    ]


def _redact(operation: JsonObject) -> JsonObject:
    if "value" not in operation:
        return operation
    path, value = str(operation["path"]), operation["value"]
    if _VARIABLE_PATH.fullmatch(path):
        return {**operation, "value": _redact_variables(value)}
    if path == "/metadata/annotations" and isinstance(value, Mapping):
        return {**operation, "value": {key: _redact_annotation(key, value[key]) for key in value}}
    return {**operation, "value": _REDACTED}


def _redact_variables(value: object) -> object:
    """Redact the variables of a container: a list of them, one, or the value of one."""
    if isinstance(value, list):
        return [_redact_variables(item) for item in value]
    if not isinstance(value, Mapping):
        return value if value == VOID else _REDACTED
    name = value.get("name")
    return value if name == VISIBLE_DEVICES else {"name": _cut(name), "value": _REDACTED}


def _redact_annotation(key: str, value: object) -> object:
    return value if key.startswith((USER_PREFIX, STATE_PREFIX)) else _REDACTED


def _metadata(request: Request) -> JsonObject:
    raw = request.object or request.old_object
    metadata = raw.get("metadata") if raw else None
    return metadata if isinstance(metadata, Mapping) else {}


def _owner(metadata: JsonObject) -> dict[str, str | None] | None:
    """Return kind and name of the controller that made the object."""
    owners = metadata.get("ownerReferences")
    if not isinstance(owners, list):
        return None
    for owner in owners:
        if isinstance(owner, Mapping) and owner.get("controller") is True:
            return {"kind": _cut(owner.get("kind")), "name": _cut(owner.get("name"))}
    return None


def _resource(request: Request) -> str:
    """Return it as kubectl writes it: `pods`, `deployments.apps`, `pods/resize`."""
    resource = f"{request.resource}.{request.group}" if request.group else request.resource
    return _cut(f"{resource}/{request.subresource}" if request.subresource else resource) or ""


def _rfc3339(at: object) -> str:
    """Write a time as orjson does; for what is no time, the TypeError that json expects."""
    if not isinstance(at, datetime):
        raise TypeError(f"{type(at).__name__} is not JSON")
    return at.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def _cut(text: object, length: int = _MAX_TEXT) -> str | None:
    """Return the text, shortened if it is long; None for what is empty or no text."""
    if not isinstance(text, str) or not text:
        return None
    return text if len(text) <= length else f"{text[: length - 1]}…"
