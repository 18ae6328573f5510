# SPDX-License-Identifier: Apache-2.0
"""A PolicyTest document becomes cases; whether they hold is for the command to find."""

import pytest

from policies.documents.policytest import Expectation, GivenPod
from policies.model.decision import Verdict
from policies.model.profile import Strength
from policies.model.reasons import Reason
from policies.model.request import User
from tests.unit.documents.loading import Loader, document, errors

SPEC = """
    facts: facts.yaml
    cases:
    - name: everything
      pod:
        file: pods/llm.yaml
        namespace: chat
        patch: {metadata: {annotations: {a: null, b: "1"}}, spec: {priority: 5, x: 1.5}}
        user: {username: jane, groups: [dev]}
      expect:
        verdict: Denied
        reason: OverCeiling
        policy: no-raw-gpu
        profile: slice-4
        requests: {nvidia.com/gpu: 8}
        strength: Hardware
        message: {contains: free 2}
        warnings: {contains: by policy}
    - {name: nothing, pod: {file: p.yaml}, expect: {verdict: Allowed}}
    """


def test_every_field_reaches_the_case(load_texts: Loader) -> None:
    (suite,) = load_texts(document("PolicyTest", "t", SPEC)).tests
    case = suite.cases[0]

    assert (suite.name, suite.file, suite.facts) == ("t", "a.yaml", "facts.yaml")
    assert (case.name, case.line) == ("everything", 7)
    assert case.pod == GivenPod(
        "pods/llm.yaml",
        "chat",
        {"metadata": {"annotations": {"a": None, "b": "1"}}, "spec": {"priority": 5, "x": 1.5}},
        User("jane", groups=("dev",)),
    )
    assert case.expect == Expectation(
        Verdict.DENIED,
        Reason.OVER_CEILING,
        "no-raw-gpu",
        "slice-4",
        {"nvidia.com/gpu": 8},
        Strength.HARDWARE,
        "free 2",
        "by policy",
    )


def test_what_is_left_out_does_not_matter(load_texts: Loader) -> None:
    case = load_texts(document("PolicyTest", "t", SPEC)).tests[0].cases[1]

    assert case.pod == GivenPod("p.yaml", None, None, User())
    assert case.expect == Expectation(Verdict.ALLOWED, None, None, None, None, None, None, None)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "reason: OverCeiling",
            "reason: OverCieling",
            'unknown reason "OverCieling"; did you mean',
        ),
        ("verdict: Denied", "verdict: denied", 'is "denied"; did you mean "Denied"?'),
        ("name: nothing", "name: everything", 'spec.cases[1]: "everything" is in this list twice'),
        ("nvidia.com/gpu: 8", 'nvidia.com/gpu: "8"', 'is "8"; write 8 without quotes'),
        ("strength: Hardware", "strength: Hard", "spec.cases[0].expect.strength: must be one of"),
        ("contains: free 2", "equals: free 2", "spec.cases[0].expect.message.equals: unknown"),
        ("user: {username: jane", "user: {name: jane", "pod.user.username: is missing"),
    ],
)
def test_a_suite_at_fault_says_where(load_texts: Loader, old: str, new: str, error: str) -> None:
    found = errors(load_texts(document("PolicyTest", "t", SPEC.replace(old, new))))

    assert any(error in line for line in found), found
