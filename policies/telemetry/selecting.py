# SPDX-License-Identifier: Apache-2.0
"""Which nodes belong to a sampling class, as node selector terms: the same as `class_of` decides.

Terms are alternatives; a node meets one if it meets all of its expressions.
"""

from collections.abc import Sequence
from typing import TypeAlias

from policies.model.labels import Expression, Operator
from policies.telemetry.classes import SAMPLING_LABEL, SamplingClass

Term: TypeAlias = tuple[Expression, ...]


def terms_of(sampling: SamplingClass, classes: Sequence[SamplingClass]) -> tuple[Term, ...]:
    """Return the terms of one of these classes. A node's label comes first, then their order."""
    names = tuple(each.name for each in classes)
    named = (Expression(SAMPLING_LABEL, Operator.IN, (sampling.name,)),)
    unnamed = Expression(SAMPLING_LABEL, Operator.NOT_IN, names)
    earlier = classes[: names.index(sampling.name)]
    others = tuple(
        Expression(key, Operator.NOT_IN, tuple(sorted(values)))
        for each in earlier
        for key, values in each.labels
    )
    if sampling is classes[-1]:
        return named, (unnamed, *others)
    own = (Expression(key, Operator.IN, tuple(sorted(values))) for key, values in sampling.labels)
    return named, *((unnamed, *others, each) for each in own)
