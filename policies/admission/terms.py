# SPDX-License-Identifier: Apache-2.0
"""A release by Sluice itself: refused if its leader's term is over.

The leader's own checks cannot stop a write that was decided before its process froze. That the
newest term is not known, or that a release names none, stops nothing.
"""

from collections.abc import Iterator

from policies.model.decision import Violation
from policies.model.facts import Facts
from policies.model.keys import TERM
from policies.model.reasons import Reason
from policies.model.request import JsonObject
from policies.model.term import read_term
from policies.pod.reading import object_at, strings_at


def past_terms(facts: Facts, released: JsonObject) -> Iterator[Violation]:
    """Yield what is wrong with the term of a pod whose gate is being taken off.

    Raises MalformedError.
    """
    newest = facts.term
    term = read_term(strings_at(object_at(released, "metadata"), "annotations").get(TERM))
    if newest is not None and term is not None and term.is_older_than(newest):
        yield Violation(
            Reason.PAST_TERM,
            f"term {term.transitions} of Lease {term.lease} is over: "
            f"who holds it in term {newest.transitions} decides on this pod",
        )
