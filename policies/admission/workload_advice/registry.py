# SPDX-License-Identifier: Apache-2.0
"""All advice there is, in the order in which it is told."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from policies.admission.workload_advice.deadline import deadline
from policies.admission.workload_advice.disruption import disruption
from policies.admission.workload_advice.gang import gang
from policies.admission.workload_advice.subject import Advised, Gated, gated
from policies.admission.workload_advice.surge import surge
from policies.admission.workload_wording import Judged, Work, named
from policies.model.request import JsonObject
from policies.model.workload import WorkloadKind

ADVICE: Final[tuple[Callable[[Advised, Gated], Iterator[str]], ...]] = (
    deadline,
    disruption,
    gang,
    surge,
)


def advice(
    work: Work, kind: WorkloadKind, raw: JsonObject, judged: Sequence[Judged]
) -> Iterator[str]:
    """Yield the warnings; templates of which the same is said share theirs."""
    all_gated = [found for each in judged if (found := gated(each)) is not None]
    advised = Advised(work, kind, raw, all_gated)
    for advise in ADVICE:
        alike: dict[str, list[Judged]] = {}
        for found in all_gated:
            for body in advise(advised, found):
                alike.setdefault(body, []).append(found.judged)
        for body, group in alike.items():
            yield named(work, group, body)
