# SPDX-License-Identifier: Apache-2.0
"""Running sums of amounts: cheap to change, exact, and never with entries of zero."""

from policies.quota.amount import Amount


class Sum:
    """A sum of amounts that are added and taken away again."""

    __slots__ = ("_amount", "_counts", "_mib", "_parts")

    def __init__(self) -> None:
        self._parts: dict[int, int] = {}
        self._counts: dict[str, int] = {}
        self._mib = 0
        self._amount: Amount | None = None

    @property
    def is_nothing(self) -> bool:
        """Tell whether it is zero in everything."""
        return not (self._parts or self._counts or self._mib)

    @property
    def amount(self) -> Amount:
        """Return the sum as a value; the same object until it changes."""
        if self._amount is None:
            self._amount = Amount(dict(self._parts), self._mib, dict(self._counts))
        return self._amount

    def add(self, amount: Amount, sign: int) -> None:
        """Add an amount (1) or take one away that was added before (-1)."""
        parts, counts = self._parts, self._counts
        for size, number in amount.parts.items():
            left = parts.get(size, 0) + sign * number
            if left:
                parts[size] = left
            else:
                parts.pop(size, None)
        for name, number in amount.counts.items():
            left = counts.get(name, 0) + sign * number
            if left:
                counts[name] = left
            else:
                counts.pop(name, None)
        self._mib += sign * amount.mib
        self._amount = None


class Account:
    """What a tenant uses in a pool.

    `used` counts until a pod is gone; `leaving` is the part of it that is being deleted, which no
    longer counts against its tenant's entitlement; `fixed` is the part that is never taken back.
    """

    __slots__ = ("fixed", "leaving", "used")

    def __init__(self) -> None:
        self.used = Sum()
        self.leaving = Sum()
        self.fixed = Sum()
