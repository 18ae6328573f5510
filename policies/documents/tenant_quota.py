# SPDX-License-Identifier: Apache-2.0
"""A Tenant's `spec.quota`: from the document to exact numbers, and to what expressions see."""

from collections.abc import Iterator, Mapping
from typing import Final

from policies.documents.field import Field
from policies.documents.problems import Problem
from policies.documents.quantities import ceiling_mib, ceiling_problems
from policies.model.tenant import DEFAULT_POOL, Quota

_MILLI: Final = 1000
_BOUNDS: Final = ("guarantee", "ceiling")


def pool_quotas(quota: Field) -> Mapping[str, Quota]:
    """Return the quota in milli-GPU of each pool that is written; `gpus` is the default pool's."""
    return {
        pool: Quota(_milli(gpus.at("guarantee")), _milli(gpus.at("ceiling")))
        for pool, gpus in _pools(quota)
    }


def memory_mib(quota: Field) -> int | None:
    """Return the ceiling of GPU memory in MiB, None where none is set."""
    return ceiling_mib(quota.at("memory", "ceiling"))


def resource_ceilings(quota: Field) -> Mapping[str, int]:
    """Return the ceilings by resource name."""
    return {
        name: entry.at("ceiling").integer()
        for name, entry in quota.at("resources").entries()
        if entry.at("ceiling").exists
    }


def cel_quota(quota: Field) -> Mapping[str, object]:
    """Return `tenant.quota`: doubles, as they are written; `has()` finds only what is there."""
    return {
        "gpus": _doubles(quota.at("gpus")),
        "pools": {name: _doubles(gpus) for name, gpus in quota.at("pools").entries()},
    }


def quota_problems(quota: Field) -> Iterator[Problem]:
    """Yield what is wrong with a quota seen alone."""
    for _, gpus in _pools(quota):
        guarantee, ceiling = gpus.at("guarantee"), gpus.at("ceiling")
        low, high = guarantee.number(), ceiling.number()
        if low is not None and high is not None and low > high:
            yield guarantee.problem(f"a guarantee of {low} is more than the ceiling {high}")
    yield from ceiling_problems(quota.at("memory", "ceiling"))


def _pools(quota: Field) -> Iterator[tuple[str, Field]]:
    # A pool of no name is refused as unknown, and does not take the default's place until then.
    yield from ((name, gpus) for name, gpus in quota.at("pools").entries() if name != DEFAULT_POOL)
    if quota.at("gpus").exists:
        yield DEFAULT_POOL, quota.at("gpus")


def _milli(field: Field) -> int | None:
    number = field.number()
    return None if number is None else int(number * _MILLI)


def _doubles(gpus: Field) -> Mapping[str, float]:
    numbers = {name: gpus.at(name).number() for name in _BOUNDS}
    return {name: float(number) for name, number in numbers.items() if number is not None}
