# SPDX-License-Identifier: Apache-2.0
"""What a decision becomes on the wire."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from policies.model.decision import Decision, Verdict, Violation
from policies.model.policy import Enforcement
from policies.model.reasons import Reason
from policies.model.settings import Mode
from tests.support.reviews import UID
from tests.support.serving import DENIED, GENERATION, PATCH, REWRITTEN
from webhook.answer import MAX_MESSAGE, MAX_WARNINGS_TOTAL, answer, encode, limit, one_line

OBSERVING = "sluice: in mode Observe, nothing was changed or refused: "
ALLOWED = Decision(Verdict.ALLOWED, GENERATION)


def respond(decision: Decision, mode: Mode = Mode.ENFORCE) -> dict[str, Any]:
    """Return the response as the API server reads it."""
    review = json.loads(encode(UID, answer(decision, mode), decision, mode))
    assert review["kind"] == "AdmissionReview"
    assert review["apiVersion"] == "admission.k8s.io/v1"
    assert review["response"]["uid"] == UID
    response: dict[str, Any] = review["response"]
    return response


def test_a_rewrite_carries_its_patch_in_base64_with_its_type() -> None:
    response = respond(REWRITTEN)
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"], validate=True)) == list(PATCH)
    assert response["warnings"] == list(REWRITTEN.warnings)
    assert "status" not in response


def test_without_a_patch_there_is_no_patch_type_either() -> None:
    for decision in (ALLOWED, DENIED, replace(DENIED, patch=PATCH)):
        response = respond(decision)
        assert "patch" not in response
        assert "patchType" not in response


def test_a_denial_is_forbidden_with_its_message_on_one_line() -> None:
    response = respond(DENIED)
    assert response["allowed"] is False
    assert response["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "sluice: [NoTenant] namespace team-a belongs to no tenant",
    }


def test_a_name_cannot_break_or_colour_the_message() -> None:
    forged = "a\nb\x1b[31mc\x9b31md\u202ee\u2028f\r\tg\x00h"
    decision = replace(DENIED, violations=(Violation(Reason.NO_TENANT, forged),))
    message = respond(decision)["status"]["message"]
    assert message == "sluice: [NoTenant] a b[31mc31mde f  gh"
    assert message.isprintable()


def test_a_message_of_five_hundred_violations_is_cut() -> None:
    many = tuple(Violation(Reason.INVALID_QUANTITY, f"container {i}: bad") for i in range(500))
    message = respond(replace(DENIED, violations=many))["status"]["message"]
    assert len(message) == MAX_MESSAGE
    assert message.endswith("...")


def test_an_internal_error_is_told_from_a_refusal() -> None:
    failed = replace(DENIED, violations=(Violation(Reason.INTERNAL_ERROR, "see the log"),))
    status = respond(failed)["status"]
    assert (status["code"], status["reason"]) == (500, "InternalError")


def test_a_warning_is_cut_at_256_characters_and_holds_no_control_characters() -> None:
    long = "sluice: " + "ä" * 300
    warnings = respond(replace(ALLOWED, warnings=(long, "a\x07b\nc")))["warnings"]
    assert [len(warning) for warning in warnings] == [256, 4]
    assert warnings[0] == long[:253] + "..."
    assert warnings[1] == "ab c"


def test_warnings_stay_below_what_the_api_server_passes_on_in_all() -> None:
    warnings = limit(f"{number} " + "x" * 300 for number in range(100))
    assert sum(map(len, warnings)) <= MAX_WARNINGS_TOTAL + 256 <= 4256
    assert sum(map(len, warnings)) < 4096
    assert warnings[-1] == "sluice: 85 more warnings"


def test_fifteen_long_warnings_all_fit() -> None:
    warnings = ("y" * 256,) * 15
    assert limit(warnings) == warnings


def test_audit_annotations_have_keys_without_prefix_and_text_values() -> None:
    assert respond(REWRITTEN)["auditAnnotations"] == {
        "verdict": "Allowed",
        "generation": GENERATION,
        "policy": "no-raw-gpu",
        "profile": "slice-4",
        "tenant": "research",
    }


def test_audit_annotations_of_a_denial_name_every_reason_once() -> None:
    violations = (
        Violation(Reason.NO_TENANT, "x"),
        Violation(Reason.HOST_ACCESS, "y", "p", Enforcement.WARN),
        Violation(Reason.NO_TENANT, "z"),
    )
    denied = replace(DENIED, violations=violations, stale_seconds=42)
    annotations = respond(denied)["auditAnnotations"]
    assert annotations["reasons"] == "NoTenant,HostAccess"
    assert annotations["stale-seconds"] == "42"


def test_observing_allows_what_would_be_denied_and_says_so() -> None:
    response = respond(DENIED, Mode.OBSERVE)
    assert response["allowed"] is True
    assert "status" not in response
    assert response["warnings"] == [
        f"{OBSERVING}would be denied: [NoTenant] namespace team-a belongs to no tenant"
    ]
    assert response["auditAnnotations"]["verdict"] == "Denied"
    assert response["auditAnnotations"]["mode"] == "Observe"


def test_observing_changes_nothing_and_tells_what_would_change() -> None:
    response = respond(REWRITTEN, Mode.OBSERVE)
    assert "patch" not in response
    assert response["warnings"] == [
        f"{OBSERVING}nvidia.com/gpu 1 -> nvidia.com/gpu.shared 1 by policy no-raw-gpu"
    ]


@pytest.mark.parametrize("text", ["", "plain", "größer → 1", "x" * 256])
def test_text_that_is_fine_stays_as_it_is(text: str) -> None:
    assert one_line(text, 256) == text
