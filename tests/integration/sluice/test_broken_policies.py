# SPDX-License-Identifier: Apache-2.0
"""A document that cannot be served: the last good set goes on, and the operator sees why."""

from collections.abc import Iterator

import pytest

from tests.integration.sluice.objects import SHARED, gpus, pod
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, until

_FILE = "policies.yaml"


@pytest.fixture
def documents(sluice: Running) -> Iterator[Running]:
    """Sluice, whose policies a test may spoil; they are as before in the end."""
    text = (sluice.policies / _FILE).read_text(encoding="utf-8")
    yield sluice
    sluice.write(_FILE, text)
    sluice.follow()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("profile: slice-4", "profile: slice-5", 'did you mean "slice-4"'),
        ("gpu.devices", "gpu.device", "policies.yaml:"),
        ("  order: 10\n", "  odrer: 10\n", "odrer"),
        ("spec:", "spec: {", "policies.yaml:"),
    ],
    ids=["unknown-profile", "wrong-expression", "unknown-field", "no-yaml"],
)
def test_a_broken_edit_keeps_the_old_set_and_shows(
    documents: Running, team_a: Team, old: str, new: str, problem: str
) -> None:
    generation = documents.follow()
    failures = documents.metric("sluice_policy_set_load_failures_total")
    good = (documents.policies / _FILE).read_text(encoding="utf-8")
    logged = len(documents.log())

    documents.write(_FILE, good.replace(old, new))
    until(lambda: documents.is_broken, "the metric telling of it")

    condition = documents.condition("documents-valid")
    assert not condition["ok"]
    assert problem in condition["message"]
    assert condition["message"].endswith("the last good set is being served")
    assert documents.readiness()["ready"]
    assert documents.metric("sluice_policy_set_load_failures_total") == failures + 1
    assert problem in documents.log()[logged:]
    assert f"broken; serving generation {generation}" in documents.log()[logged:]
    assert documents.serves(generation)
    team_a.create(pod())
    assert gpus(team_a.running()) == {"main": {SHARED: "1"}}


def test_a_mended_edit_is_served_and_the_alarm_ends(documents: Running, team_a: Team) -> None:
    good = (documents.policies / _FILE).read_text(encoding="utf-8")
    documents.write(_FILE, "nothing good")
    until(lambda: not documents.condition("documents-valid")["ok"], "readiness telling of it")

    documents.write(_FILE, good.replace("name: quarter", "name: mended"))
    documents.follow()

    assert documents.condition("documents-valid")["ok"]
    assert not documents.is_broken
    (warning,) = team_a.apply(pod()).warnings
    assert warning.endswith("by policy mended")


def test_a_document_that_vanishes_is_a_broken_edit_too(documents: Running, team_a: Team) -> None:
    generation = documents.follow()
    profiles = documents.policies / "profiles.yaml"
    text = profiles.read_text(encoding="utf-8")
    profiles.unlink()
    try:
        until(lambda: documents.is_broken, "the metric telling of it")

        assert documents.serves(generation)
        assert team_a.apply(pod()).ok
    finally:
        documents.write("profiles.yaml", text)
    until(lambda: not documents.is_broken, "the end of the alarm")
