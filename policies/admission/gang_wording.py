# SPDX-License-Identifier: Apache-2.0
"""A pod that says it is of a gang, and not of how many: such a pod waits for ever."""

from collections.abc import Iterator, Mapping
from typing import Final

from policies.model.keys import GANG_LABEL, GANG_SIZE
from policies.quota.gang_size import MOST_IN_GANG, read_gang_size

_SHOWN: Final = 32
_WANTED: Final = f"state how many pods the gang has, from 1 to {MOST_IN_GANG}"


def gang_faults(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a pod's label and annotation of gangs."""
    stated = annotations.get(GANG_SIZE)
    if not labels.get(GANG_LABEL):
        if stated is not None:
            yield f"sluice: annotation {GANG_SIZE} without label {GANG_LABEL}: it makes no gang"
        return
    if stated is None:
        yield (
            f"sluice: label {GANG_LABEL} without annotation {GANG_SIZE}, so that it is never "
            f"released: {_WANTED}"
        )
    elif read_gang_size(stated) is None:
        shown = stated if len(stated) <= _SHOWN else f"{stated[:_SHOWN]}..."
        yield f"sluice: {GANG_SIZE} {shown!r} is no number, so that it is never released: {_WANTED}"
