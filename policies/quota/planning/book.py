# SPDX-License-Identifier: Apache-2.0
"""What one tenant uses while a plan is made: sums that grow with what the plan releases.

Ceilings, and what others use, must not be here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policies.quota.amount import Amount


class Use:
    """Parts of GPUs in one pool, with their milli-GPU kept."""

    __slots__ = ("_parts", "milli")

    def __init__(self, parts: Mapping[int, int]) -> None:
        self._parts = dict(parts)
        self.milli = sum(-(-1000 * count // size) for size, count in parts.items())

    def with_more(self, parts: Mapping[int, int]) -> int:
        """Return milli-GPU with so much more; shares of one size are rounded up together."""
        milli = self.milli
        for size, count in parts.items():
            before = self._parts.get(size, 0)
            milli += -(-1000 * (before + count) // size) - -(-1000 * before // size)
        return milli

    def add(self, parts: Mapping[int, int]) -> None:
        """Count so much more."""
        self.milli = self.with_more(parts)
        for size, count in parts.items():
            self._parts[size] = self._parts.get(size, 0) + count

    def copy(self) -> "Use":
        """Return one that grows apart."""
        return Use(self._parts)


@dataclass(slots=True)
class Book:
    """Uses by pool, those never taken back among them, and what counts over all pools."""

    used: dict[str, Use] = field(default_factory=dict)
    fixed: dict[str, Use] = field(default_factory=dict)
    mib: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def used_in(self, pool: str) -> Use:
        """Return what is used in a pool."""
        return _of(self.used, pool)

    def fixed_in(self, pool: str) -> Use:
        """Return what of it is never taken back."""
        return _of(self.fixed, pool)

    def add(self, pool: str, amount: Amount, *, fixed: bool) -> None:
        """Count so much more."""
        self.used_in(pool).add(amount.parts)
        if fixed:
            self.fixed_in(pool).add(amount.parts)
        self.mib += amount.mib
        for name, count in amount.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    def copy(self) -> "Book":
        """Return one that grows apart."""
        return Book(
            {pool: use.copy() for pool, use in self.used.items()},
            {pool: use.copy() for pool, use in self.fixed.items()},
            self.mib,
            dict(self.counts),
        )


def book_of(used: Mapping[str, Amount], fixed: Mapping[str, Amount]) -> Book:
    """Return the book of a tenant by what it uses in each pool."""
    book = Book(_uses(used.items()), _uses(fixed.items()))
    for amount in used.values():
        book.mib += amount.mib
        for name, count in amount.counts.items():
            book.counts[name] = book.counts.get(name, 0) + count
    return book


def _uses(amounts: Iterable[tuple[str, Amount]]) -> dict[str, Use]:
    return {pool: Use(amount.parts) for pool, amount in amounts}


def _of(uses: dict[str, Use], pool: str) -> Use:
    found = uses.get(pool)
    if found is None:
        found = uses[pool] = Use({})
    return found
