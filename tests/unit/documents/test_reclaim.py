# SPDX-License-Identifier: Apache-2.0
"""A ReclaimPolicy document says how lent GPUs are taken back, cohort by cohort."""

import pytest

from policies.documents.problems import Severity
from policies.model.reclaim import AfterPdbTimeout, ReclaimPolicy
from tests.unit.documents.loading import COMPLETE, Loader, document, errors, lines, served

IN_MAIN = COMPLETE.replace("{names: [chat]}\n", "{names: [chat]}\n  cohort: main\n", 1)


def test_what_is_left_out_has_the_default(load_texts: Loader) -> None:
    found = served(load_texts(COMPLETE, document("ReclaimPolicy", "all", "description: x")))

    assert found.reclaim_policies == (ReclaimPolicy(name="all"),)


def test_every_field_is_read(load_texts: Loader) -> None:
    spec = """
        cohorts: [main]
        enabled: false
        notice: 30s
        maxGrace: 1h
        pdbTimeout: 5m
        afterPdbTimeout: Keep
        readmitAfter: 2m
        """
    found = served(load_texts(IN_MAIN, document("ReclaimPolicy", "main", spec)))

    assert found.reclaim_policies == (
        ReclaimPolicy("main", ("main",), False, 30, 3600, 300, AfterPdbTimeout.KEEP, 120),
    )


def test_the_policy_that_names_a_cohort_goes_before_the_one_for_all(load_texts: Loader) -> None:
    texts = (
        document("ReclaimPolicy", "all", "notice: 5m"),
        document("ReclaimPolicy", "main", "cohorts: [main]"),
    )
    found = served(load_texts(IN_MAIN, *texts))

    assert [policy.name for policy in found.reclaim_policies] == ["all", "main"]
    assert found.reclaim_policy_of("main").name == "main"
    assert found.reclaim_policy_of("other").name == "all"
    assert found.reclaim_policy_of(None).name == "all"


def test_a_policy_counts_in_the_generation(load_texts: Loader) -> None:
    texts = (COMPLETE, *(document("ReclaimPolicy", "x", f"notice: {n}m") for n in (1, 2)))
    generations = {
        served(load_texts(*given)).generation
        for given in (texts[:1], texts[:2], (texts[0], texts[2]))
    }

    assert len(generations) == 3


def test_two_policies_cannot_name_one_cohort(load_texts: Loader) -> None:
    texts = (
        document("ReclaimPolicy", "a", "cohorts: [main]"),
        document("ReclaimPolicy", "b", "cohorts: [other, main]"),
    )
    found = errors(load_texts(IN_MAIN, *texts))

    assert found == [
        (
            "c.yaml:5:20: error: ReclaimPolicy/b: spec.cohorts[1]: "
            'cohort "main" has ReclaimPolicy a already, in b.yaml:3'
        )
    ]


def test_two_policies_cannot_both_be_for_all_cohorts(load_texts: Loader) -> None:
    texts = [document("ReclaimPolicy", name, "notice: 1m") for name in ("a", "b")]
    found = errors(load_texts(IN_MAIN, *texts))

    assert found == [
        (
            "c.yaml:5:3: error: ReclaimPolicy/b: spec: "
            "without cohorts it speaks of all, as a does already, in b.yaml:3"
        )
    ]


def test_a_cohort_that_nobody_is_in_is_pointed_out(load_texts: Loader) -> None:
    result = load_texts(IN_MAIN, document("ReclaimPolicy", "x", "cohorts: [mian]"))

    assert served(result).reclaim_policies[0].cohorts == ("mian",)
    assert lines(result) == [
        (
            "b.yaml:5:13: warning: ReclaimPolicy/x: spec.cohorts[0]: "
            'no tenant is in a cohort "mian"; did you mean "main"?'
        )
    ]


def test_cohorts_are_not_missed_where_there_is_no_tenant(load_texts: Loader) -> None:
    result = load_texts(document("ReclaimPolicy", "x", "cohorts: [mian]"))

    assert not any("cohort" in line for line in lines(result, Severity.WARNING))


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("cohorts: []", "spec.cohorts: must have at least one item"),
        ("cohorts: [a, a]", 'spec.cohorts[1]: "a" is in this list twice'),
        ("cohorts: [a.b]", "spec.cohorts[0]: must be lower-case letters"),
        ("enabled: 'no'", 'spec.enabled: must be true or false, is "no"; write false'),
        ("afterPdbTimeout: Kill", 'must be one of Delete, Keep; is "Kill"'),
        ("noticed: 1m", 'spec.noticed: unknown field; did you mean "notice"?'),
        ("idle: {}", "spec.idle: is not supported yet (reports or ends work that holds a GPU"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(load_texts: Loader, spec: str, error: str) -> None:
    found = errors(load_texts(IN_MAIN, document("ReclaimPolicy", "x", spec)))

    assert len(found) == 1, found
    assert error in found[0]
