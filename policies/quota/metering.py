# SPDX-License-Identifier: Apache-2.0
"""How much of GPUs is charged for how long, by tenant, pool and sharing mode: an exact integral.

Milli-GPU times milliseconds are millionths of a GPU-second, in whole numbers. Shares are rounded
once per sum, as in the ledger. What counts, and when that is looked at, must not be here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from policies.model.policyset import PolicySet
from policies.model.profile import Profile
from policies.pod.asked import effective_counts
from policies.quota.account import Sum
from policies.quota.amount import Amount, share, total
from policies.quota.forms import form_of
from policies.quota.pods import Ask, Shape

UNKNOWN: Final = "Unknown"
"""The mode of GPUs of which nothing tells in which form they are held."""
MIXED: Final = "Mixed"
"""The mode of pods in several modes whose charge cannot be told apart any more."""


class Key(NamedTuple):
    """What is metered apart. `mode` is a SharingMode, `UNKNOWN` or `MIXED`."""

    tenant: str
    pool: str
    mode: str


Use: TypeAlias = tuple[tuple[Key, Amount], ...]


@dataclass(slots=True)
class _Flow:
    amount: Sum = field(default_factory=Sum)
    since_ms: int = 0
    micro: int = 0

    def pass_to(self, now_ms: int) -> None:
        if now_ms > self.since_ms:
            self.micro += self.amount.amount.milli * (now_ms - self.since_ms)
            self.since_ms = now_ms


class Meter:
    """Tell it of each change as it happens. Times are milliseconds of a clock that never goes back.

    An earlier time than one before counts as that.
    """

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._flows: dict[Key, _Flow] = {}
        self._uses: dict[str, Use] = {}

    def put(self, uid: str, use: Use, now_ms: int) -> None:
        """Have what is charged under a UID from now on be this; nothing ends it."""
        self._now_ms = max(self._now_ms, now_ms)
        for key, amount in self._uses.pop(uid, ()):
            self._flow(key).amount.add(amount, -1)
        for key, amount in use:
            self._flow(key).amount.add(amount, 1)
        if use:
            self._uses[uid] = use

    def take(self, now_ms: int) -> Mapping[Key, int]:
        """Return millionths of GPU-seconds since this was last asked, where there are any."""
        self._now_ms = max(self._now_ms, now_ms)
        found = {}
        for key in tuple(self._flows):
            flow = self._flow(key)
            if flow.micro:
                found[key], flow.micro = flow.micro, 0
            if flow.amount.is_nothing:
                del self._flows[key]
        return found

    def _flow(self, key: Key) -> _Flow:
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows[key] = _Flow(since_ms=self._now_ms)
        flow.pass_to(self._now_ms)
        return flow


class Modes:
    """Tells in which modes pods hold what they are charged; remembers it by shape."""

    def __init__(self) -> None:
        self._policies: PolicySet | None = None
        self._known: WeakKeyDictionary[Shape, Mapping[str, Amount]] = WeakKeyDictionary()

    def split(
        self,
        shape: Shape,
        charged: Amount,
        policies: PolicySet,
        labels: Mapping[str, str] | None = None,
    ) -> Mapping[str, Amount]:
        """Return what is charged by mode; `labels` are those of the node of an uncharged pod."""
        if labels is not None:
            return _split(_by_mode(shape, policies, labels), charged)
        if policies is not self._policies:
            self._policies = policies
            self._known.clear()
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = _by_mode(shape, policies, None)
        return _split(found, charged)


def _split(by_mode: Mapping[str, Amount], charged: Amount) -> Mapping[str, Amount]:
    if len(by_mode) == 1:
        return dict.fromkeys(by_mode, charged)
    if total(by_mode.values()).parts == charged.parts:
        return by_mode
    return {MIXED if by_mode else UNKNOWN: charged}


def _by_mode(
    shape: Shape, policies: PolicySet, labels: Mapping[str, str] | None
) -> Mapping[str, Amount]:
    """Return what a pod of the shape costs in each mode by today's policies."""
    forms: dict[str, Profile | None] = {}

    def counts(ask: Ask) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for resource, count in ask.counts.items():
            form = form_of(resource, ask.profile, shape, policies, labels)
            name = resource if form is None else form.name
            forms[name] = form
            found[name] += count
        return found

    units = effective_counts([(ask.kind, counts(ask)) for ask in shape.asks])
    amounts = [(_mode(forms[name]), _cost(forms[name], count)) for name, count in units.items()]
    return {mode: _sum(mode, amounts) for mode, _ in amounts}


def _sum(mode: str, amounts: Iterable[tuple[str, Amount]]) -> Amount:
    return total(amount for other, amount in amounts if other == mode)


def _mode(form: Profile | None) -> str:
    return UNKNOWN if form is None else str(form.mode)


def _cost(form: Profile | None, units: int) -> Amount:
    return Amount({1: units}) if form is None else share(form.charge, units)
