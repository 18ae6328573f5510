# SPDX-License-Identifier: Apache-2.0
"""Reviews as a real kube-apiserver sent them: the four calls of one create, and of a dry run.

Two mutating calls with another webhook between them that adds a GPU container, then the rest.
"""

import json
from pathlib import Path
from typing import cast

import pytest

from policies.model.request import Operation, Phase
from tests.support.serving import RecordingAudit, make_serving
from webhook.envelope import parse
from webhook.reviews import Reviews

CAPTURED = Path(__file__).with_name("captured")


def calls(name: str) -> list[bytes]:
    return (CAPTURED / name).read_bytes().splitlines()


@pytest.mark.parametrize(("name", "dry_run"), [("create.jsonl", False), ("dry-run.jsonl", True)])
def test_each_call_is_answered_under_its_own_uid(name: str, *, dry_run: bool) -> None:
    serving = make_serving()
    reviews = Reviews(serving)
    for body in calls(name):
        response = json.loads(reviews.review(body, Phase.MUTATE, float("inf")))["response"]
        assert response["uid"] == json.loads(body)["request"]["uid"]
    entries = cast("RecordingAudit", serving.audit).entries
    assert len({entry.request.uid for entry in entries}) == 4
    assert {entry.request.dry_run for entry in entries} == {dry_run}


def test_a_generated_name_is_known_in_the_last_call_alone() -> None:
    found = [parse(body, Phase.MUTATE) for body in calls("create.jsonl")]
    assert [bool(request.name) for request in found] == [False, False, False, True]
    assert {request.operation for request in found} == {Operation.CREATE}
    assert {(request.namespace, request.resource) for request in found} == {("team-a", "pods")}
