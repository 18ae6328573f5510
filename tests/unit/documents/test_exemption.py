# SPDX-License-Identifier: Apache-2.0
"""An Exemption document says who is spared what, why and until when; the time is given."""

from datetime import UTC, datetime, timedelta

import pytest

from policies.documents.load import LoadResult
from policies.documents.problems import Severity
from policies.model.exemption import Exemption
from policies.model.labels import Expression, Operator
from tests.unit.documents.loading import COMPLETE, Loader, document, errors, lines, served

SPEC = """
    description: For a test.
    policies: [no-raw-gpu]
    match:
      tenants: [chat]
      namespaces: [chat-bench]
      users: ["system:serviceaccount:bench:runner"]
      labels: {matchLabels: {team: bench}}
    reason: Whole cards for the comparison
    expiresAt: "2031-12-12T00:00:00+01:00"
    """
END = datetime(2031, 12, 11, 23, tzinfo=UTC)


def load(load_texts: Loader, spec: str, now: datetime | None = None) -> LoadResult:
    return load_texts(COMPLETE, document("Exemption", "week", spec), now=now)


def short(match: str = "{namespaces: [x]}", expires_at: str = "2031-12-12T00:00:00Z") -> str:
    return f"policies: [no-raw-gpu]\nmatch: {match}\nreason: x\nexpiresAt: {expires_at}"


def test_every_field_reaches_the_exemption(load_texts: Loader) -> None:
    (found,) = served(load(load_texts, SPEC)).exemptions

    assert found.labels is not None
    assert found.labels.expressions == (Expression("team", Operator.IN, ("bench",)),)
    assert found == Exemption(
        name="week",
        policies=frozenset({"no-raw-gpu"}),
        reason="Whole cards for the comparison",
        expires_at=END,
        tenants=frozenset({"chat"}),
        namespaces=frozenset({"chat-bench"}),
        users=frozenset({"system:serviceaccount:bench:runner"}),
        labels=found.labels,
    )


def test_what_is_left_out_of_the_match_does_not_matter(load_texts: Loader) -> None:
    (found,) = served(load(load_texts, short())).exemptions

    assert (found.tenants, found.users, found.labels) == (None, None, None)
    assert found.namespaces == frozenset({"x"})


@pytest.mark.parametrize("left_out", ["policies", "match", "reason", "expiresAt"])
def test_who_what_why_and_until_when_must_all_be_said(load_texts: Loader, left_out: str) -> None:
    spec = "\n".join(line for line in short().splitlines() if not line.startswith(left_out))
    found = errors(load(load_texts, spec))

    assert len(found) == 1, found
    assert found[0].endswith(f"error: Exemption/week: spec.{left_out}: is missing")


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "[no-raw-gpu]",
            "[no-raw-gpus]",
            'spec.policies[0]: there is no policy "no-raw-gpus"; did you mean "no-raw-gpu"?',
        ),
        ("[no-raw-gpu]", "[]", "spec.policies: must have at least one item"),
        ("[chat]", "[chta]", 'match.tenants[0]: there is no tenant "chta"; did you mean "chat"?'),
        ("reason: Whole cards for the comparison", "reason: ' '", "spec.reason: must not be empty"),
        ("reason: Whole cards for the comparison", "reason: ''", "spec.reason: must not be empty"),
        (
            '"2031-12-12T00:00:00+01:00"',
            "2031-12-12",
            (
                '13:14: error: Exemption/week: spec.expiresAt: "2031-12-12" is no RFC 3339 time '
                "with a zone; write it as 2031-12-12T00:00:00Z"
            ),
        ),
        ('"2031-12-12T00:00:00+01:00"', "20311212", "spec.expiresAt: must be text, is 20311212"),
        ('"2031-12-12T00:00:00+01:00"', "never", '"never" is no RFC 3339 time with a zone'),
        ("{matchLabels: {team: bench}}", "{matchLabels: {a b: c}}", '"a b" is no label key'),
    ],
)
def test_an_exemption_that_cannot_be_is_refused(
    load_texts: Loader, old: str, new: str, error: str
) -> None:
    found = errors(load(load_texts, SPEC.replace(old, new)))

    assert len(found) == 1, found
    assert error in found[0]


@pytest.mark.parametrize(
    ("match", "error"),
    [
        ("{}", "6:10: error: Exemption/week: spec.match: must have at least one of tenants, nam"),
        ("{labels: {}}", "6:19: error: Exemption/week: spec.match.labels: an empty selector alone"),
        ("{labels: {matchLabels: {}}}", "an empty selector alone would spare every pod"),
        ("{users: []}", "spec.match.users: must have at least one item"),
    ],
)
def test_an_exemption_of_everybody_is_refused(load_texts: Loader, match: str, error: str) -> None:
    found = errors(load(load_texts, short(match)))

    assert len(found) == 1, found
    assert error in found[0]


def test_an_empty_selector_beside_a_namespace_is_no_fault(load_texts: Loader) -> None:
    assert lines(load(load_texts, short("{namespaces: [x], labels: {}}"))) == []


@pytest.mark.parametrize("late", [timedelta(0), timedelta(days=1)])
def test_one_that_has_ended_is_a_warning_where_the_time_is_known(
    load_texts: Loader, late: timedelta
) -> None:
    result = load(load_texts, SPEC, END + late)

    assert served(result).exemptions[0].expires_at == END
    assert lines(result) == [
        (
            "b.yaml:13:14: warning: Exemption/week: spec.expiresAt: has passed: the exemption "
            "counts no longer and only makes a warning; take it out, or extend it"
        )
    ]


@pytest.mark.parametrize("now", [None, END - timedelta(microseconds=1)])
def test_one_that_lasts_or_where_the_time_is_not_known_is_none(
    load_texts: Loader, now: datetime | None
) -> None:
    assert lines(load(load_texts, SPEC, now)) == []


def test_the_time_of_loading_does_not_change_what_is_served(load_texts: Loader) -> None:
    early, late = load(load_texts, SPEC), load(load_texts, SPEC, END + timedelta(days=1))

    assert served(early).generation == served(late).generation
    assert served(early).exemptions == served(late).exemptions


def test_one_of_a_policy_that_never_speaks_of_its_pods_is_pointed_out(load_texts: Loader) -> None:
    policy = "order: 1\nmatch: {namespaces: [chat]}\nrewrite: {profile: whole}"
    exemption = short().replace("[no-raw-gpu]", "[narrow, no-raw-gpu]")
    texts = document("GPUPolicy", "narrow", policy), document("Exemption", "week", exemption)
    result = load_texts(COMPLETE, *texts)

    assert lines(result) == [
        (
            "c.yaml:5:14: warning: Exemption/week: spec.policies[0]: policy narrow speaks of none "
            "of these pods: they need no sparing"
        )
    ]


def test_exemptions_are_served_in_the_order_of_their_names(load_texts: Loader) -> None:
    texts = [document("Exemption", name, short()) for name in ("b", "c", "a")]

    assert [e.name for e in served(load_texts(COMPLETE, *texts)).exemptions] == ["a", "b", "c"]


def test_a_policy_that_an_unreadable_file_may_hold_is_not_called_missing(
    load_texts: Loader,
) -> None:
    found = errors(load_texts(document("Exemption", "week", short()), "a: [\n"))

    assert len(found) == 1
    assert "did not find" in found[0]


def test_severities_are_told_apart(load_texts: Loader) -> None:
    result = load(load_texts, short(expires_at="2001-01-01T00:00:00Z"), END)

    assert [p.severity for p in result.problems] == [Severity.WARNING]
