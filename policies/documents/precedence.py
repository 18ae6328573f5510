# SPDX-License-Identifier: Apache-2.0
"""Which of several rewriting policies goes first: ties, and policies whose turn never comes."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from policies.documents.compiled import Compiled
from policies.documents.overlap import MatchIndex, are_disjoint, covers
from policies.documents.problems import Problem, Severity
from policies.model.policy import Enforcement, Policy
from policies.model.profile import Profile

_MOST: Final = 2000
"""So many rewriting policies are compared with one another; the work grows with the square."""

_Policies = list[Compiled[Policy]]


def rewrites(policy: Policy) -> bool:
    """Tell whether the policy gives a form; one that only warns or audits does not."""
    gives = policy.profile is not None or policy.fit is not None
    return gives and policy.enforcement is Enforcement.ENFORCE


def check_precedence(
    policies: Iterable[Compiled[Policy]], profiles: Mapping[str, Profile | None]
) -> Iterator[Problem]:
    """Yield warnings. Policies for different vendors' devices do not compete."""
    by_vendor: dict[str, _Policies] = {}
    for policy in policies:
        # What is at fault reads as missing, so the match would look wider than it is.
        if policy.is_sound and rewrites(policy.value):
            for vendor in _vendors(policy.value, profiles):
                by_vendor.setdefault(vendor, []).append(policy)
    for competing in by_vendor.values():
        yield from _compare(sorted(competing, key=lambda p: (p.value.order, p.value.name)))


def _vendors(policy: Policy, profiles: Mapping[str, Profile | None]) -> Iterable[str]:
    """Return whose devices a policy gives, in the order of its profiles."""
    names = policy.fit.candidates if policy.fit else (policy.profile or "",)
    found = (profiles.get(name) for name in names)
    return dict.fromkeys(profile.vendor for profile in found if profile is not None)


def _compare(policies: _Policies) -> Iterator[Problem]:
    if len(policies) > _MOST:
        message = f"{len(policies)} policies rewrite; the order of so many is not checked"
        yield Problem(Severity.NOTE, message)
        return
    active: _Policies = []
    wide: MatchIndex[Compiled[Policy]] = MatchIndex()
    for policy in policies:
        match = policy.value.match
        earlier = next((w for w in wide.near(match) if covers(w.value.match, match)), None)
        if earlier is not None and earlier.value.name != policy.value.name:
            message = f"never applies: {earlier.value.name} goes first and takes all its pods"
            yield policy.root.at("spec", "rewrite").problem(message, severity=Severity.WARNING)
            continue
        active.append(policy)
        if not match.when:
            wide.add(match, policy)
    for _, group in groupby(active, key=lambda policy: policy.value.order):
        yield from _ties(group)


def _ties(policies: Iterable[Compiled[Policy]]) -> Iterator[Problem]:
    before: MatchIndex[Compiled[Policy]] = MatchIndex()
    for policy in policies:
        near = before.near(policy.value.match)
        tied = next((other for other in near if _compete(other, policy)), None)
        before.add(policy.value.match, policy)
        if tied is not None:
            message = f"is that of {tied.value.name} too, and both may rewrite the same pod"
            order = policy.root.at("spec", "order")
            hint = f"as it is, the name decides: {tied.value.name} goes first"
            yield order.problem(message, hint, Severity.WARNING)


def _compete(one: Compiled[Policy], other: Compiled[Policy]) -> bool:
    return one.value.name != other.value.name and not are_disjoint(
        one.value.match, other.value.match
    )
