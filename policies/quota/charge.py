# SPDX-License-Identifier: Apache-2.0
"""The annotation that says what a released pod is charged, and to whom.

Only Sluice's account may write it, so it is trusted where it is; pods that lack it are charged
anew from what they ask for. JSON with sorted keys, version 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from policies.quota.amount import Amount

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ChargeRecord:
    """What a pod was charged when it was released.

    `pool` is empty for the default pool. `reclaimable` is False for work that is never taken back.
    `borrowed` tells that its tenant was past its guarantee with it. `at` is in Unix seconds.
    """

    tenant: str
    pool: str
    amount: Amount
    generation: str
    at: int
    exclusive: bool = False
    reclaimable: bool = True
    borrowed: bool = False

    def to_annotation(self) -> str:
        """Return it as compact JSON: the same charge is the same bytes."""
        plain = {
            "v": _VERSION,
            "tenant": self.tenant,
            "pool": self.pool,
            "parts": {str(size): count for size, count in self.amount.parts.items()},
            "mib": self.amount.mib,
            "counts": dict(self.amount.counts),
            "milli": self.amount.milli,
            "generation": self.generation,
            "at": self.at,
            "exclusive": self.exclusive,
            "reclaimable": self.reclaimable,
            "borrowed": self.borrowed,
        }
        return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode()


def read_charge(text: str | None) -> ChargeRecord | None:
    """Return the charge of an annotation, None where there is none or it is not of our making."""
    if not text:
        return None
    try:
        plain = orjson.loads(text)
        return _record(plain) if plain["v"] == _VERSION else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _record(plain: Mapping[str, Any]) -> ChargeRecord:
    amount = Amount(
        {_size(size): n for size, count in plain["parts"].items() if (n := _count(count))},
        _count(plain["mib"]),
        {_text(name): n for name, count in plain["counts"].items() if (n := _count(count))},
    )
    return ChargeRecord(
        tenant=_text(plain["tenant"]),
        pool=_text(plain["pool"]),
        amount=amount,
        generation=_text(plain["generation"]),
        at=_count(plain["at"]),
        exclusive=plain["exclusive"] is True,
        reclaimable=plain["reclaimable"] is True,
        borrowed=plain["borrowed"] is True,
    )


def _size(text: str) -> int:
    size = int(text)
    if size < 1:
        raise ValueError(text)
    return size


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(value)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
