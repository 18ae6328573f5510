# SPDX-License-Identifier: Apache-2.0
"""What is taken for a review, and what is not."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest

from policies.model.request import Operation, Phase, User
from tests.support.reviews import NAMESPACE, UID, Json, body, envelope, pod, request, review
from webhook.envelope import ReviewError, parse


def test_a_review_of_a_create_is_read_whole() -> None:
    given = request(pod(), name="demo", dryRun=True)
    found = parse(body(envelope(given)), Phase.MUTATE)
    assert (found.phase, found.operation) == (Phase.MUTATE, Operation.CREATE)
    assert (found.group, found.resource, found.subresource) == ("", "pods", "")
    assert (found.namespace, found.name, found.uid, found.kind) == (NAMESPACE, "demo", UID, "Pod")
    assert found.user == User("jane", "jane", ("system:authenticated",))
    assert (found.object, found.old_object, found.dry_run) == (pod(), None, True)
    assert found.raw == given


def test_absent_and_null_are_the_same_as_the_api_server_omits_empty_fields() -> None:
    given = request(pod())
    sparse = {key: given[key] for key in ("uid", "kind", "resource", "operation", "userInfo")}
    absent = parse(body(envelope(sparse)), Phase.VALIDATE)
    nulls = dict.fromkeys(("namespace", "name", "subResource", "object", "oldObject", "dryRun"))
    null = parse(body(envelope(sparse | nulls)), Phase.VALIDATE)
    for found in (absent, null):
        assert (found.namespace, found.name, found.subresource) == ("", "", "")
        assert (found.object, found.old_object, found.dry_run) == (None, None, False)


def test_a_subresource_and_an_old_object_are_read() -> None:
    given = review(
        pod(),
        subResource="resize",
        operation="UPDATE",
        oldObject=pod(name="old"),
        resource={"group": "apps", "version": "v1", "resource": "deployments"},
    )
    found = parse(body(given), Phase.VALIDATE)
    assert (found.group, found.resource, found.subresource) == ("apps", "deployments", "resize")
    assert found.operation is Operation.UPDATE
    assert found.old_object == pod(name="old")


@pytest.mark.parametrize("obj", [{}, {"spec": 7}, {"": None}, {"spec": {"containers": "x"}}])
def test_any_json_object_is_taken_as_the_object(obj: Json) -> None:
    assert parse(body(review(obj)), Phase.MUTATE).object == obj


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"AdmissionReview"', "not a JSON object"),
        (b"{}", "not an AdmissionReview of admission.k8s.io/v1"),
    ],
)
def test_a_body_that_is_no_review_is_a_bad_request(raw: bytes, words: str) -> None:
    with pytest.raises(ReviewError, match=words) as caught:
        parse(raw, Phase.MUTATE)
    assert caught.value.status is HTTPStatus.BAD_REQUEST


def _set(*path: str, to: object) -> Callable[[Json], None]:
    def change(given: Json) -> None:
        parent: Any = given
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = to

    return change


def _drop(*path: str) -> Callable[[Json], None]:
    def change(given: Json) -> None:
        parent: Any = given
        for key in path[:-1]:
            parent = parent[key]
        del parent[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("kind", to="Pod"), "not an AdmissionReview"),
        (_drop("kind"), "not an AdmissionReview"),
        (_set("apiVersion", to="admission.k8s.io/v1beta1"), "of admission.k8s.io/v1"),
        (_set("apiVersion", to=1), "of admission.k8s.io/v1"),
        (_drop("request"), "request is missing"),
        (_set("request", to=[]), "request is missing or not an object"),
        (_drop("request", "uid"), "request.uid is missing"),
        (_set("request", "uid", to=""), "request.uid is missing or empty"),
        (_set("request", "uid", to=7), "request.uid is not a string"),
        (_drop("request", "operation"), "request.operation is not one of CREATE"),
        (_set("request", "operation", to="create"), "request.operation is not one of"),
        (_set("request", "operation", to={}), "request.operation is not a string"),
        (_drop("request", "resource"), "request.resource is missing"),
        (_set("request", "resource", to="pods"), "request.resource is not an object"),
        (_set("request", "resource", to={"group": ""}), "request.resource.resource is missing"),
        (_set("request", "resource", "resource", to=1), "request.resource.resource is not"),
        (_set("request", "resource", "group", to=1), "request.resource.group is not a string"),
        (_drop("request", "kind"), "request.kind is missing"),
        (_set("request", "kind", to="Pod"), "request.kind is not an object"),
        (_set("request", "kind", "kind", to=[]), "request.kind.kind is not a string"),
        (_set("request", "namespace", to={}), "request.namespace is not a string"),
        (_set("request", "name", to=[]), "request.name is not a string"),
        (_set("request", "subResource", to=1), "request.subResource is not a string"),
        (_set("request", "dryRun", to="false"), "request.dryRun is not true or false"),
        (_set("request", "dryRun", to=0), "request.dryRun is not true or false"),
        (_drop("request", "userInfo"), "request.userInfo is missing"),
        (_set("request", "userInfo", to="jane"), "request.userInfo is not an object"),
        (_set("request", "userInfo", "username", to=1), "userInfo.username is not a string"),
        (_set("request", "userInfo", "uid", to=1), "userInfo.uid is not a string"),
        (_set("request", "userInfo", "groups", to="a"), "groups is not a list of strings"),
        (_set("request", "userInfo", "groups", to=["a", 1]), "groups is not a list of strings"),
        (_set("request", "object", to=[]), "request.object is not an object"),
        (_set("request", "object", to="pod"), "request.object is not an object"),
        (_set("request", "object", to=False), "request.object is not an object"),
        (_set("request", "oldObject", to=0), "request.oldObject is not an object"),
    ],
)
def test_each_fault_of_the_envelope_is_named(change: Callable[[Json], None], words: str) -> None:
    given = review()
    change(given)
    with pytest.raises(ReviewError, match=words) as caught:
        parse(body(given), Phase.MUTATE)
    assert caught.value.status is HTTPStatus.BAD_REQUEST
