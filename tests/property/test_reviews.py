# SPDX-License-Identifier: Apache-2.0
"""What must hold for the answer to any well-formed review, whatever object is in it."""

import base64
import json
from dataclasses import replace
from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from policies.decide import decide
from policies.model.request import Operation, Phase
from policies.model.settings import FailureMode, Mode, Settings
from reconciler.runtime.audit_record import to_line
from tests.support import reviews
from tests.support.builders import facts, policy_set
from tests.support.serving import RecordingAudit, make_serving
from tests.support.strategies import json_values, mutilated, pods, unshared
from webhook.reviews import Reviews
from webhook.serving import Serving

_objects = st.one_of(
    pods(tame=False),
    mutilated().filter(lambda found: isinstance(found, dict)),
    st.dictionaries(st.sampled_from(["metadata", "spec", "kind", "status", ""]), json_values),
)
_resources = st.sampled_from(
    [
        *(("", "pods", sub) for sub in ("", "ephemeralcontainers", "resize", "status", "eviction")),
        *(("apps", kind, "") for kind in ("deployments", "statefulsets", "replicasets")),
        *(("batch", kind, "") for kind in ("jobs", "cronjobs")),
        ("resource.k8s.io", "resourceclaims", ""),
        ("kubeflow.org", "pytorchjobs", ""),
    ]
)
_texts = st.text(st.characters(codec="utf-8"), max_size=20)


@st.composite
def requests(draw: st.DrawFn) -> reviews.Json:
    """Return a request with a well-formed envelope; names may hold anything that JSON can."""
    group, resource, subresource = draw(_resources)
    return reviews.request(
        draw(_objects),
        uid=draw(_texts.filter(bool)),
        operation=draw(st.sampled_from(list(Operation))),
        namespace=draw(st.sampled_from(["chat", "vision", "lab", "other", ""])),
        name=draw(_texts),
        resource={"group": group, "version": "v1", "resource": resource},
        subResource=subresource,
        oldObject=draw(st.none() | _objects),
        dryRun=draw(st.booleans()),
        userInfo={"username": draw(_texts), "groups": draw(st.lists(_texts, max_size=2))},
    )


def _ask(serving: Serving, request: reviews.Json, phase: Phase) -> dict[str, Any]:
    body = reviews.body(reviews.envelope(request))
    answered = json.loads(Reviews(serving).review(body, phase, deadline=float("inf")))
    assert answered["apiVersion"] == "admission.k8s.io/v1"
    assert answered["kind"] == "AdmissionReview"
    response: dict[str, Any] = answered["response"]
    return response


def _check_shape(response: dict[str, Any], request: reviews.Json) -> None:
    assert response["uid"] == request["uid"]
    assert isinstance(response["allowed"], bool)
    assert ("patch" in response) == ("patchType" in response)
    assert response["allowed"] or "patch" not in response
    assert response["allowed"] == ("status" not in response)
    warnings = response.get("warnings", [])
    assert all(len(warning) <= 256 and warning.isprintable() for warning in warnings)
    assert sum(map(len, warnings)) <= 4096
    assert all(isinstance(value, str) for value in response["auditAnnotations"].values())


@given(requests(), st.sampled_from(Phase))
def test_every_review_is_answered_under_its_uid_and_never_as_a_fault_of_ours(
    request: reviews.Json, phase: Phase
) -> None:
    policies = policy_set()
    audit = RecordingAudit()
    serving = make_serving(policies=lambda: policies, facts=facts, decide=decide, audit=audit)
    response = _ask(serving, request, phase)
    _check_shape(response, request)
    if not response["allowed"]:
        assert response["status"]["code"] == 403
        assert response["status"]["message"].startswith("sluice: [")
        assert response["status"]["message"].isprintable()
    if "patch" in response:
        patch = json.loads(base64.b64decode(response["patch"]))
        jsonpatch.apply_patch(unshared(request["object"]), patch)
    (entry,) = audit.entries
    line = to_line(entry)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line)["allowed"] is response["allowed"]


@given(requests(), st.sampled_from(Phase), st.sampled_from(Mode), st.sampled_from(FailureMode))
def test_a_fault_of_the_core_is_answered_in_the_same_form(
    request: reviews.Json, phase: Phase, mode: Mode, failure: FailureMode
) -> None:
    def broken(*_: object) -> Any:
        raise LookupError

    policies = policy_set()
    settings = Settings(mode=mode, failure_mode=failure)
    serving = make_serving(policies=lambda: replace(policies, settings=settings), decide=broken)
    response = _ask(serving, request, phase)
    _check_shape(response, request)
    assert response["allowed"] == (mode is Mode.OBSERVE or failure is FailureMode.ALLOW)


@given(requests(), st.sampled_from(Phase))
def test_observing_never_refuses_and_never_changes(request: reviews.Json, phase: Phase) -> None:
    policies = replace(policy_set(), settings=Settings(mode=Mode.OBSERVE))
    serving = make_serving(policies=lambda: policies, facts=facts, decide=decide)
    response = _ask(serving, request, phase)
    _check_shape(response, request)
    assert response["allowed"] is True
    assert "patch" not in response
