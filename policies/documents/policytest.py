# SPDX-License-Identifier: Apache-2.0
"""Kind `PolicyTest`: given facts and pods, what must come out. Running it is for shells."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.documents.compiled import Compiled
from policies.documents.field import Field, Subject
from policies.documents.problems import Problem, quoted
from policies.documents.scalars import plain
from policies.documents.suggest import did_you_mean
from policies.model.decision import Verdict
from policies.model.profile import Strength
from policies.model.reasons import Reason
from policies.model.request import User

_REASONS: Final = frozenset(map(str, Reason))


@dataclass(frozen=True, slots=True)
class GivenPod:
    """The pod of a case. `file` is relative to the suite's file; None of namespace: the pod's own.

    `patch` is a JSON merge patch (RFC 7386) on the manifest.
    """

    file: str
    namespace: str | None
    patch: Mapping[str, object] | None
    user: User


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come out of a case; None of a field: it does not matter."""

    verdict: Verdict
    reason: Reason | None
    policy: str | None
    profile: str | None
    requests: Mapping[str, int] | None
    strength: Strength | None
    message_contains: str | None
    warnings_contain: str | None


@dataclass(frozen=True, slots=True)
class PolicyTestCase:
    """One case; `line` is where it stands in the suite's file."""

    name: str
    line: int
    pod: GivenPod
    expect: Expectation


@dataclass(frozen=True, slots=True)
class PolicyTestDocument:
    """A suite. `file` is its own name as it was loaded, `facts` the facts' relative to it."""

    name: str
    file: str
    facts: str
    cases: tuple[PolicyTestCase, ...]


def compile_test(subject: Subject) -> Compiled[PolicyTestDocument]:
    """Return the suite; whether its files exist is not looked at."""
    root = subject.root
    cases = tuple(root.at("spec", "cases").items())
    suite = PolicyTestDocument(
        name=root.at("metadata", "name").text(),
        file=subject.document.file,
        facts=root.at("spec", "facts").text(),
        cases=tuple(_case(case) for case in cases),
    )
    problems = tuple(problem for case in cases for problem in _problems(case.at("expect")))
    return Compiled(suite, root, problems)


def _case(case: Field) -> PolicyTestCase:
    return PolicyTestCase(
        name=case.at("name").text(),
        line=case.subject.document.position(case.path).line,
        pod=_pod(case.at("pod")),
        expect=_expectation(case.at("expect")),
    )


def _pod(pod: Field) -> GivenPod:
    patch = plain(pod.at("patch").value)
    user = pod.at("user")
    return GivenPod(
        file=pod.at("file").text(),
        namespace=pod.at("namespace").optional_text(),
        patch=patch if isinstance(patch, dict) else None,
        user=User(user.at("username").text(), groups=user.at("groups").texts()),
    )


def _expectation(expect: Field) -> Expectation:
    reason, requests = expect.at("reason").text(), expect.at("requests")
    strength = expect.at("strength")
    return Expectation(
        verdict=Verdict(expect.at("verdict").text(Verdict.DENIED)),
        reason=Reason(reason) if reason in _REASONS else None,
        policy=expect.at("policy").optional_text(),
        profile=expect.at("profile").optional_text(),
        requests={name: n.integer() for name, n in requests.entries()} if requests.exists else None,
        strength=Strength(strength.text()) if strength.exists else None,
        message_contains=expect.at("message", "contains").optional_text(),
        warnings_contain=expect.at("warnings", "contains").optional_text(),
    )


def _problems(expect: Field) -> Iterator[Problem]:
    reason = expect.at("reason")
    if reason.exists and reason.text() not in _REASONS:
        suggestion = did_you_mean(reason.text(), _REASONS)
        yield reason.problem(f"unknown reason {quoted(reason.text())}", suggestion)
