# SPDX-License-Identifier: Apache-2.0
"""How much of a GPU's memory a stored pod states that it needs; never raises."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from policies.cluster.reading import mapping, mappings, text
from policies.model.keys import GPU_MEMORY
from policies.model.quantity import QuantityError, parse_mib

Raw: TypeAlias = Mapping[str, object]

LIMITS: Final = (
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_DEVICE_MEMORY_LIMIT",
    "GPU_MEMORY_LIMIT",
)
"""Variables that say how much of a GPU's memory a container may use, or should."""

_SECTIONS: Final = ("initContainers", "containers")
_MAX_MIB: Final = 64 * 1024 * 1024


def stated_mib(pod: Raw) -> int | None:
    """Return the most that the pod states to need of one device; None where it says nothing."""
    said = _mib(text(mapping(pod, "metadata", "annotations"), GPU_MEMORY))
    stated = [mib for mib in (said, *_limits(mapping(pod, "spec"))) if mib is not None]
    return max(stated, default=None)


def _limits(spec: Raw) -> Iterator[int | None]:
    for section in _SECTIONS:
        for container in mappings(spec, section):
            for variable in mappings(container, "env"):
                if text(variable, "name") in LIMITS:
                    yield from map(_limit, text(variable, "value").split(","))


def _limit(value: str) -> int | None:
    """Return MiB of a limit as CUDA's programs write it: `8192m`, `0=4G`, or as Kubernetes does."""
    amount = value.rpartition("=")[2].strip()
    if amount[-1:] in ("m", "M", "g", "G", "k", "K"):
        amount = f"{amount[:-1]}{amount[-1].upper()}i"  # they mean powers of two
    return _mib(amount)


def _mib(value: str) -> int | None:
    try:
        mib = parse_mib(value) if value else 0
    except QuantityError:
        return None
    return mib if 0 < mib <= _MAX_MIB else None
