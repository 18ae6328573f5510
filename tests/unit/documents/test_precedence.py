# SPDX-License-Identifier: Apache-2.0
"""Ties in order, and policies whose turn never comes, are pointed out where they are certain."""

import pytest

from policies.cel import Environment, ResultType
from policies.documents import precedence
from policies.documents.overlap import MatchIndex, covers
from policies.documents.problems import Severity
from policies.model.policy import Match, NamedExpression
from tests.unit.documents.loading import PROFILE, TENANT, Loader, document, lines

OTHER = document("Tenant", "other", "namespaces: {names: [other]}")
WHEN = "when: [{name: a, expression: gpu.devices == 1}]"


def policies(*specs: str) -> str:
    """Return policies p0, p1, ... that give whole GPUs unless they say what they give."""
    full = (s if "rewrite" in s else f"{s}\nrewrite: {{profile: whole}}" for s in specs)
    return "---\n".join(document("GPUPolicy", f"p{n}", spec) for n, spec in enumerate(full))


def warnings(load_texts: Loader, *specs: str) -> list[str]:
    result = load_texts(TENANT, OTHER, PROFILE, policies(*specs))
    assert result.policy_set is not None, lines(result)
    return lines(result, Severity.WARNING)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"match: {{{WHEN}}}", f"match: {{{WHEN}}}"),
        ("match: {tenants: [chat]}", "match: {namespaces: [a]}"),
        ("match: {tenants: [chat]}", f"match: {{tenants: [chat, other], {WHEN}}}"),
        ("match: {labels: {matchLabels: {a: x}}}", "match: {labels: {matchLabels: {b: x}}}"),
        (
            "match: {labels: {matchLabels: {a: x}}}",
            "match: {labels: {matchExpressions: [{key: a, operator: In, values: [w, x]}]}}",
        ),
    ],
)
def test_a_tie_of_two_rewrites_that_may_meet_is_pointed_out(
    load_texts: Loader, one: str, other: str
) -> None:
    found = warnings(load_texts, one, other)

    assert len(found) == 1, found
    assert "GPUPolicy/p1: spec.order: is that of p0 too, and both may rewrite" in found[0]
    assert found[0].endswith("as it is, the name decides: p0 goes first")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("match: {tenants: [chat]}", "match: {tenants: [other]}"),
        ("match: {namespaces: [a]}", "match: {namespaces: [b]}"),
        ("match: {ownerKinds: [Job]}", "match: {ownerKinds: [ReplicaSet]}"),
        ("match: {labels: {matchLabels: {a: x}}}", "match: {labels: {matchLabels: {a: y}}}"),
        (f"order: 1\nmatch: {{{WHEN}}}", "order: 2"),
        (f"match: {{{WHEN}}}", f"match: {{{WHEN}}}\nenforcement: Warn"),
        (f"match: {{{WHEN}}}", f"match: {{{WHEN}}}\nrewrite: {{profile: amd}}"),
    ],
)
def test_rewrites_that_cannot_meet_may_tie(load_texts: Loader, one: str, other: str) -> None:
    amd = document("SharingProfile", "amd", "mode: Exclusive\nvendor: amd")

    assert lines(load_texts(TENANT, OTHER, amd, policies(one, other))) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("order: 1", "order: 2"),
        ("order: 1", "order: 1"),
        ("order: 1", f"order: 2\nmatch: {{tenants: [chat], {WHEN}}}"),
        ("order: 1\nmatch: {tenants: [chat, other]}", "order: 2\nmatch: {tenants: [chat]}"),
        (
            "order: 1\nmatch: {labels: {matchLabels: {a: x}}}",
            "order: 2\nmatch: {namespaces: [n], labels: {matchLabels: {a: x, b: y}}}",
        ),
    ],
)
def test_a_rewrite_whose_turn_never_comes_is_pointed_out(
    load_texts: Loader, first: str, second: str
) -> None:
    found = warnings(load_texts, first, second)

    assert len(found) == 1, found
    assert (
        "GPUPolicy/p1: spec.rewrite: never applies: p0 goes first and takes all its po" in found[0]
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"order: 1\nmatch: {{{WHEN}}}", "order: 2"),
        ("order: 1\nmatch: {tenants: [chat]}", "order: 2"),
        ("order: 1\nmatch: {tenants: [chat]}", "order: 2\nmatch: {tenants: [chat, other]}"),
        ("order: 1\nenforcement: Audit", "order: 2"),
        ("order: 1\nmatch: {labels: {matchLabels: {a: x}}}", "order: 2"),
    ],
)
def test_a_rewrite_whose_turn_may_come_is_left_alone(
    load_texts: Loader, first: str, second: str
) -> None:
    assert warnings(load_texts, first, second) == []


def test_a_policy_at_fault_is_not_taken_for_a_wide_one(load_texts: Loader) -> None:
    broken = document("GPUPolicy", "a", "order: 1\nmatch: {tenants: 5}\nrewrite: {profile: whole}")
    faulty = document(
        "GPUPolicy",
        "b",
        "order: 1\nmatch: {when: [{name: a, expression: gpus.x}]}\nrewrite: {profile: whole}",
    )
    good = document("GPUPolicy", "c", "rewrite: {profile: whole}")

    assert lines(load_texts(TENANT, broken, faulty, good), Severity.WARNING) == []


def test_so_many_policies_that_comparing_takes_long_are_not_compared(
    load_texts: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precedence, "_MOST", 20)
    found = lines(load_texts(TENANT, policies(*["order: 1"] * 21)))

    assert found == ["note: 21 policies rewrite; the order of so many is not checked"]


def test_a_match_with_conditions_covers_nothing_for_certain(environment: Environment) -> None:
    condition = NamedExpression("a", environment.compile("true", ResultType.BOOL))

    assert not covers(Match(when=(condition,)), Match())
    assert covers(Match(), Match(when=(condition,)))


def test_the_index_finds_every_match_that_may_overlap() -> None:
    matches = {
        "all": Match(),
        "chat": Match(tenants=frozenset({"chat"})),
        "both": Match(tenants=frozenset({"chat", "other"}), namespaces=frozenset({"a"})),
        "a": Match(namespaces=frozenset({"a", "b"})),
        "c": Match(namespaces=frozenset({"c"})),
    }
    index: MatchIndex[str] = MatchIndex()
    for name, match in matches.items():
        index.add(match, name)

    assert list(index.near(Match())) == list(matches)
    assert list(index.near(matches["c"])) == ["all", "chat", "c"]
    assert {"all", "both"} <= set(index.near(Match(tenants=frozenset({"other"}))))
    assert "chat" not in index.near(Match(tenants=frozenset({"other"})))
