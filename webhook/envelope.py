# SPDX-License-Identifier: Apache-2.0
"""Takes an admission request out of its AdmissionReview.

Strict on the envelope, which the API server writes; the object inside may be any JSON object.
Wire format: Kubernetes `admission.k8s.io/v1` AdmissionReview. Answers must not be here.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, cast

import orjson

from policies.model.request import JsonObject, Operation, Phase, Request, User

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

_OPERATIONS: Final = {str(operation): operation for operation in Operation}


class ReviewError(Exception):
    """A call that is no review: the caller's fault, answered with this HTTP status."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


def parse(body: bytes, phase: Phase) -> Request:
    """Return the request of a review that came to the endpoint of `phase`. Raises ReviewError."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ReviewError(f"the body is not JSON: {error}") from None
    if not isinstance(review, dict):
        raise ReviewError("the body is not a JSON object")
    if review.get("kind") != KIND or review.get("apiVersion") != API_VERSION:
        raise ReviewError(f"the body is not an {KIND} of {API_VERSION}")
    raw = review.get("request")
    if not isinstance(raw, dict):
        raise ReviewError("request is missing or not an object")
    return _request(raw, phase)


def _request(raw: JsonObject, phase: Phase) -> Request:
    uid = _text(raw, "uid")
    if not uid:
        raise ReviewError("request.uid is missing or empty")
    operation = _OPERATIONS.get(_text(raw, "operation"))
    if operation is None:
        raise ReviewError(f"request.operation is not one of {', '.join(_OPERATIONS)}")
    resource = _required(raw, "resource")
    name = _text(resource, "resource", "request.resource")
    if not name:
        raise ReviewError("request.resource.resource is missing or empty")
    return Request(
        phase=phase,
        operation=operation,
        group=_text(resource, "group", "request.resource"),
        resource=name,
        subresource=_text(raw, "subResource"),
        namespace=_text(raw, "namespace"),
        name=_text(raw, "name"),
        user=_user(_required(raw, "userInfo")),
        object=_optional(raw, "object"),
        old_object=_optional(raw, "oldObject"),
        uid=uid,
        kind=_text(_required(raw, "kind"), "kind", "request.kind"),
        dry_run=_flag(raw, "dryRun"),
        raw=raw,
    )


def _user(raw: JsonObject) -> User:
    groups = raw.get("groups")
    if groups is None:
        groups = ()
    elif not isinstance(groups, list) or any(not isinstance(group, str) for group in groups):
        raise ReviewError("request.userInfo.groups is not a list of strings")
    return User(
        username=_text(raw, "username", "request.userInfo"),
        uid=_text(raw, "uid", "request.userInfo"),
        groups=tuple(groups),
    )


def _text(parent: JsonObject, key: str, where: str = "request") -> str:
    """Return a string; an empty one where it is absent or null, which mean the same."""
    value = parent.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ReviewError(f"{where}.{key} is not a string")
    return value


def _flag(parent: JsonObject, key: str) -> bool:
    value = parent.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise ReviewError(f"request.{key} is not true or false")
    return value


def _optional(parent: JsonObject, key: str) -> JsonObject | None:
    value = parent.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise ReviewError(f"request.{key} is not an object")
    return cast("JsonObject | None", value)


def _required(parent: JsonObject, key: str) -> JsonObject:
    value = _optional(parent, key)
    if value is None:
        raise ReviewError(f"request.{key} is missing")
    return value
