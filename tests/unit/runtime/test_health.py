# SPDX-License-Identifier: Apache-2.0
"""When a process may be sent work."""

import pytest

from reconciler.runtime.health import (
    Condition,
    Readiness,
    documents_condition,
    facts_fresh_condition,
    facts_synced_condition,
    policies_condition,
)

GOOD = (
    policies_condition("7c1f"),
    documents_condition(None),
    facts_synced_condition(synced=True),
    facts_fresh_condition(None),
)


def test_a_process_with_policies_and_facts_is_ready() -> None:
    assert Readiness(GOOD).ready


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (policies_condition(None), "no policy set has been loaded yet"),
        (facts_synced_condition(synced=False), "have not been listed yet"),
    ],
)
def test_without_policies_or_facts_it_is_not(condition: Condition, words: str) -> None:
    readiness = Readiness(GOOD).with_condition(condition)
    assert not readiness.ready
    assert words in condition.message


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (documents_condition("a.yaml:3: no"), "a.yaml:3: no; the last good set is being served"),
        (facts_fresh_condition(90), "the facts are 90 s old"),
    ],
)
def test_what_can_be_lived_with_is_told_but_takes_no_replica_away(
    condition: Condition, words: str
) -> None:
    readiness = Readiness(GOOD).with_condition(condition)
    assert readiness.ready
    assert readiness.to_json()["conditions"] == [
        *(each.to_json() for each in GOOD),
        {"name": condition.name, "ok": False, "required": False, "message": words},
    ]


def test_a_condition_without_message_shows_none() -> None:
    shown = facts_synced_condition(synced=True).to_json()
    assert shown == {"name": "facts-synced", "ok": True, "required": True}
