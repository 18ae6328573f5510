# SPDX-License-Identifier: Apache-2.0
"""A gang whose pods will never all be there: they are released all or none."""

from collections.abc import Iterator
from typing import Final

from policies.admission.workload_advice.subject import Advised, Gated, whole
from policies.cluster.reading import mapping
from policies.model.keys import GANG_LABEL, GANG_SIZE
from policies.quota.gang_size import read_gang_size

_STATEFUL_SETS: Final = ("apps", "statefulsets")


def gang(advised: Advised, found: Gated) -> Iterator[str]:
    """Advise to state as many pods as will be there, and to have them made together."""
    name = found.labels.get(GANG_LABEL)
    size = read_gang_size(found.annotations.get(GANG_SIZE, ""))
    if not name or size is None:
        return  # told of each pod
    made = _made(advised, name)
    if made is not None and made != size:
        yield _other_size(name, size, made)
    if size > 1 and _is_ordered(advised):
        yield (
            f"its pods are a gang of {size}, and OrderedReady makes the second only once the first "
            "is ready: none is ever released; set podManagementPolicy: Parallel"
        )


def _other_size(name: str, size: int, made: int) -> str:
    told = f"{GANG_SIZE} is {size}, and {made} pods of gang {name} are made here"
    if made > size:
        return f"{told}, which is too many: none is released; set it to {made}"
    return f"{told}: none is released until there are {size}, or it is set to {made}"


def _made(advised: Advised, name: str) -> int | None:
    """Return how many pods of the gang are there at once; None where that is not told."""
    counts = [_at_once(found) for found in advised.judged if found.labels.get(GANG_LABEL) == name]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _at_once(found: Gated) -> int | None:
    """Return how many pods of a template there are: a Job makes no more than are to complete."""
    count, completions = found.judged.pods.count, whole(found.job.get("completions"))
    parallelism = whole(found.job.get("parallelism"))
    if count is None or completions is None or not parallelism:
        return count
    return count // parallelism * min(parallelism, completions)


def _is_ordered(advised: Advised) -> bool:
    if (advised.kind.group, advised.kind.resource) != _STATEFUL_SETS:
        return False
    return mapping(advised.raw, "spec").get("podManagementPolicy") in (None, "", "OrderedReady")
