# SPDX-License-Identifier: Apache-2.0
"""Puts a decision into the words of an AdmissionReview response.

Wire format: Kubernetes `admission.k8s.io/v1` AdmissionResponse. The API server cuts warnings
above 256 characters, and all of them when they pass 4096 together
(apiserver `endpoints/filters/warning.go`); control characters make it drop one.
"""

from binascii import b2a_base64
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, NamedTuple

import orjson

from policies.model.decision import Decision
from policies.model.reasons import Reason
from policies.model.request import JsonObject
from policies.model.settings import Mode
from webhook.envelope import API_VERSION, KIND

MAX_WARNING: Final = 256
MAX_WARNINGS_TOTAL: Final = 4000
MAX_MESSAGE: Final = 4096
_MAX_ANNOTATION: Final = 1024
_PREFIX: Final = "sluice: "
_OBSERVING: Final = "sluice: in mode Observe, nothing was changed or refused: "


class Answer(NamedTuple):
    """What is told to the API server; `patch` is empty where nothing changes."""

    allowed: bool
    warnings: tuple[str, ...] = ()
    patch: tuple[JsonObject, ...] = ()
    code: HTTPStatus = HTTPStatus.OK
    message: str = ""


def answer(decision: Decision, mode: Mode) -> Answer:
    """Return what the decision comes to in this mode."""
    if mode is Mode.OBSERVE:
        return Answer(allowed=True, warnings=limit(_observed(decision)))
    warnings = limit(decision.warnings) if decision.warnings else ()
    if decision.allowed:
        return Answer(allowed=True, warnings=warnings, patch=decision.patch)
    internal = Reason.INTERNAL_ERROR in decision.reasons
    return Answer(
        allowed=False,
        warnings=warnings,
        code=HTTPStatus.INTERNAL_SERVER_ERROR if internal else HTTPStatus.FORBIDDEN,
        message=one_line(decision.message, MAX_MESSAGE),
    )


def encode(uid: str, given: Answer, decision: Decision, mode: Mode) -> bytes:
    """Return the body of the response: an AdmissionReview that echoes the request's uid."""
    response: dict[str, object] = {"uid": uid, "allowed": given.allowed}
    if given.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = b2a_base64(orjson.dumps(given.patch), newline=False).decode()
    if not given.allowed:
        response["status"] = {
            "status": "Failure",
            "message": given.message,
            "reason": "Forbidden" if given.code is HTTPStatus.FORBIDDEN else "InternalError",
            "code": int(given.code),
        }
    if given.warnings:
        response["warnings"] = given.warnings
    response["auditAnnotations"] = _annotations(decision, mode)
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def one_line(text: str, length: int) -> str:
    """Return the text as one line that shows as it is: no control or direction characters.

    What is longer than `length` characters ends in an ellipsis.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " * char.isspace() for char in text)
    return text if len(text) <= length else f"{text[: length - 3]}..."


def limit(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings in a form that the API server passes on whole, the last ones counted."""
    lines = [one_line(warning, MAX_WARNING) for warning in warnings]
    total = 0
    for index, line in enumerate(lines):
        total += len(line)
        if total > MAX_WARNINGS_TOTAL:
            return (*lines[:index], f"{_PREFIX}{len(lines) - index} more warnings")
    return tuple(lines)


def _observed(decision: Decision) -> Iterable[str]:
    if not decision.allowed:
        yield f"{_OBSERVING}would be denied: {decision.message.removeprefix(_PREFIX)}"
    for warning in decision.warnings:
        yield f"{_OBSERVING}{warning.removeprefix(_PREFIX)}"


def _annotations(decision: Decision, mode: Mode) -> dict[str, str]:
    """Return what the API server's own audit log shall hold; it prefixes the webhook's name."""
    annotations = {"verdict": str(decision.verdict), "generation": decision.generation}
    if decision.policy:
        annotations["policy"] = decision.policy
    if decision.profile:
        annotations["profile"] = decision.profile
    if decision.tenant:
        annotations["tenant"] = decision.tenant
    if decision.violations:
        annotations["reasons"] = ",".join(decision.reasons)[:_MAX_ANNOTATION]
    if mode is Mode.OBSERVE:
        annotations["mode"] = str(mode)
    if decision.stale_seconds is not None:
        annotations["stale-seconds"] = str(decision.stale_seconds)
    return annotations
