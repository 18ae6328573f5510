# SPDX-License-Identifier: Apache-2.0
"""Reviews from bytes to bytes, without a network: what is decided, answered and recorded."""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from policies.model.decision import Decision, Verdict
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.request import Phase, Request
from policies.model.settings import FailureMode, Mode, Settings
from tests.support.reviews import UID, Json, body, pod, review
from tests.support.serving import (
    DENIED,
    FACTS,
    GENERATION,
    NOW,
    REWRITTEN,
    Clockwork,
    RecordingAudit,
    make_serving,
    policy_set,
    sample,
)
from webhook.envelope import ReviewError
from webhook.reviews import Reviews
from webhook.serving import Serving

IN_TIME = 1e9


def ask(
    serving: Serving, given: Json | None = None, *, phase: Phase = Phase.MUTATE, by: float = IN_TIME
) -> dict[str, Any]:
    """Return the response to a review; by default of a pod with one GPU."""
    answered = Reviews(serving).review(body(given or review()), phase, by)
    response: dict[str, Any] = json.loads(answered)["response"]
    return response


def audited(serving: Serving) -> Json:
    """Return the one recorded entry as a dict."""
    (entry,) = cast("RecordingAudit", serving.audit).entries
    return entry._asdict()


def failing(error: BaseException) -> Callable[[PolicySet, Facts, Request], Decision]:
    def decide(_policies: PolicySet, _facts: Facts, _request: Request) -> Decision:
        raise error

    return decide


def test_one_review_sees_one_policy_set_and_one_picture_of_the_cluster() -> None:
    sets = iter([policy_set(generation="a"), policy_set(generation="b")])
    pictures = iter([FACTS, replace(FACTS, stale_seconds=1)])
    seen: list[tuple[str, int | None]] = []

    def decide(policies: PolicySet, facts: Facts, _: Request) -> Decision:
        seen.append((policies.generation, facts.stale_seconds))
        return Decision(Verdict.ALLOWED, policies.generation)

    serving = make_serving(policies=lambda: next(sets), facts=lambda: next(pictures), decide=decide)
    generations = [ask(serving)["auditAnnotations"]["generation"] for _ in range(2)]
    assert generations == ["a", "b"]
    assert seen == [("a", None), ("b", 1)]


def test_the_core_is_given_the_request_of_the_endpoint_that_was_called() -> None:
    phases: list[Phase] = []

    def decide(_policies: PolicySet, _facts: Facts, request: Request) -> Decision:
        phases.append(request.phase)
        return REWRITTEN

    for phase in Phase:
        ask(make_serving(decide=decide), phase=phase)
    assert phases == [Phase.MUTATE, Phase.VALIDATE]


def test_a_review_is_audited_and_counted_with_what_was_answered() -> None:
    serving = make_serving(DENIED, clock=Clockwork().clock())
    assert ask(serving)["allowed"] is False
    entry = audited(serving)
    assert (entry["decision"], entry["allowed"], entry["mode"]) == (DENIED, False, Mode.ENFORCE)
    assert (entry["at"], entry["duration_us"]) == (NOW, 0)
    assert entry["request"].uid == UID
    labels = {"phase": "Mutate", "resource": "pods", "dry_run": "false", "mode": "Enforce"}
    counted = sample(
        serving.metrics, "sluice_reviews_total", verdict="Denied", reason="NoTenant", **labels
    )
    assert counted == 1


def test_what_is_no_review_is_neither_answered_nor_recorded() -> None:
    serving = make_serving()
    with pytest.raises(ReviewError):
        Reviews(serving).review(b"{}", Phase.MUTATE, IN_TIME)
    assert cast("RecordingAudit", serving.audit).entries == []


def test_a_fault_of_the_core_denies_a_gpu_pod_and_names_the_review(
    caplog: pytest.LogCaptureFixture,
) -> None:
    serving = make_serving(decide=failing(ZeroDivisionError("secret detail")))
    response = ask(serving)
    assert response["uid"] == UID
    assert response["allowed"] is False
    status = response["status"]
    assert (status["code"], status["reason"]) == (500, "InternalError")
    assert UID in status["message"]
    assert "secret detail" not in json.dumps(response)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert UID in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
    counted = sample(
        serving.metrics, "sluice_internal_errors_total", phase="Mutate", cause="Exception"
    )
    assert counted == 1
    assert audited(serving)["decision"].reasons == ("InternalError",)


def test_a_fault_of_the_core_allows_with_a_warning_if_the_settings_say_so() -> None:
    policies = policy_set(Settings(failure_mode=FailureMode.ALLOW))
    serving = make_serving(policies=lambda: policies, decide=failing(KeyError("x")))
    response = ask(serving)
    assert response["allowed"] is True
    assert "patch" not in response
    (warning,) = response["warnings"]
    assert warning.startswith("sluice: [InternalError] not checked: ")
    assert UID in warning


def test_a_fault_of_the_core_never_stops_a_pod_without_gpus() -> None:
    serving = make_serving(decide=failing(KeyError("x")), touches_gpus=lambda _: False)
    assert ask(serving)["allowed"] is True


def test_a_fault_of_the_screen_counts_as_touching_gpus() -> None:
    def broken(_: Request) -> bool:
        raise RecursionError

    assert ask(make_serving(decide=failing(KeyError("x")), touches_gpus=broken))["allowed"] is False


def test_observing_survives_a_fault_without_refusing() -> None:
    policies = policy_set(Settings(mode=Mode.OBSERVE))
    serving = make_serving(policies=lambda: policies, decide=failing(KeyError("x")))
    response = ask(serving)
    assert response["allowed"] is True
    assert "would be denied: [InternalError]" in response["warnings"][0]


def test_a_provider_that_fails_is_a_fault_like_any_other() -> None:
    def broken() -> Any:
        raise OSError

    for serving in (make_serving(policies=broken), make_serving(facts=broken)):
        assert ask(serving)["status"]["code"] == 500


@pytest.mark.parametrize("value", [2**70, float("nan"), object(), {1: 2}])
def test_a_patch_that_is_no_json_is_a_fault_and_not_a_broken_answer(value: object) -> None:
    patch = ({"op": "add", "path": "/x", "value": value},)
    response = ask(make_serving(replace(REWRITTEN, patch=patch)))
    assert response["uid"] == UID
    if response["allowed"]:  # NaN becomes null, which is JSON
        assert value != value  # noqa: PLR0124 - true of NaN alone
    else:
        assert response["status"]["code"] == 500


def test_cancellation_is_no_fault() -> None:
    serving = make_serving(decide=failing(asyncio.CancelledError()))
    with pytest.raises(asyncio.CancelledError):
        ask(serving)


def test_before_any_policies_gpu_pods_are_refused_with_a_reason_to_try_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    serving = make_serving(policies=lambda: None)
    response = ask(serving)
    assert "no policies loaded yet: try again" in response["status"]["message"]
    assert response["auditAnnotations"]["generation"] == ""
    counted = sample(
        serving.metrics, "sluice_internal_errors_total", phase="Mutate", cause="NoPolicies"
    )
    assert counted == 1
    assert all(record.exc_info is None for record in caplog.records)


def test_a_review_past_its_deadline_is_not_decided() -> None:
    time = Clockwork(seconds=50.0)
    serving = make_serving(decide=failing(AssertionError("decided")), clock=time.clock())
    response = ask(serving, by=49.9)
    assert "came too late" in response["status"]["message"]
    assert response["auditAnnotations"]["generation"] == GENERATION
    assert ask(make_serving(clock=time.clock()), by=50.0)["allowed"] is True


def test_a_fault_of_the_audit_log_does_not_cost_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        def record(self, _: object) -> None:
            raise ValueError

    response = ask(make_serving(audit=Broken()))
    assert response["allowed"] is True
    assert "answered but not recorded" in caplog.text


def test_a_dry_run_is_answered_alike_and_marked_in_the_audit_log() -> None:
    real, dry = make_serving(), make_serving()
    assert ask(real) == ask(dry, review(pod(), dryRun=True))
    assert audited(dry)["request"].dry_run is True
