# SPDX-License-Identifier: Apache-2.0
"""What the person who applies a workload reads: one line for each distinct fate of its pods."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.admission import wording
from policies.admission.ceilings import GPUS, excesses
from policies.admission.charging import Cost, amount, gpus, price, units
from policies.admission.context import Context
from policies.admission.outcome import Outcome
from policies.admission.over_quota import Left, left_for_all
from policies.admission.reach import Reach
from policies.model.decision import Decision
from policies.model.facts import Facts
from policies.model.policy import Enforcement
from policies.model.policyset import PolicySet
from policies.model.tenant import Tenant
from policies.vendors import Catalog
from policies.workloads.pods import PodSet

_LONGEST: Final = 256
"""The API server cuts a warning that is longer."""
_MOST_NAMES: Final = 3
_LONGEST_NAME: Final = 63
_PREFIX: Final = "sluice: "


@dataclass(frozen=True, slots=True)
class Work:
    """The workload that is spoken of, and what it is held against. `kind` is in lower case."""

    policies: PolicySet
    facts: Facts
    kind: str
    name: str
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class Judged:
    """The pods of one template and what was decided on them; no context if they were not read."""

    pods: PodSet
    decision: Decision
    outcome: Outcome = field(default_factory=Outcome)
    context: Context | None = None

    @property
    def bodies(self) -> tuple[str, ...]:
        """Return what is said of one pod."""
        if self.decision.allowed:
            return tuple(line.removeprefix(_PREFIX) for line in self.decision.warnings)
        enforced = (v for v in self.decision.violations if v.enforcement is Enforcement.ENFORCE)
        return tuple(map(str, enforced))

    @property
    def rewrites(self) -> int:
        """Return how many of the bodies, the first ones, are rewrites."""
        if self.context is None or not self.decision.allowed:
            return 0
        return len(tuple(wording.rewrites(self.context, self.outcome.grants)))


def told(work: Work, judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the warnings; templates of which the same is said share theirs."""
    alike: dict[tuple[bool, tuple[str, ...]], list[Judged]] = {}
    for found in judged:
        alike.setdefault((found.decision.allowed, found.bodies), []).append(found)
    for (is_allowed, bodies), group in alike.items():
        of = f"{_PREFIX}pods of {work.kind} {work.name}{_names(group)}"
        if is_allowed:
            yield from _allowed(of, bodies, group, is_new=work.is_new)
        else:
            yield from (f"{of} will be refused: {body}" for body in bodies)


def named(work: Work, group: Sequence[Judged], body: str) -> str:
    """Return a warning on the workload itself, with the names of the templates it is about."""
    line = f"{_PREFIX}{work.kind} {work.name}{_names(group)}: {body}"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def _allowed(
    of: str, bodies: tuple[str, ...], group: Sequence[Judged], *, is_new: bool
) -> Iterator[str]:
    rewrites, total = group[0].rewrites, _total(group, is_new=is_new)
    lines = [f"{of}: {body}" for body in bodies]
    if total and rewrites and len(lines[rewrites - 1]) + len(total) + 2 <= _LONGEST:
        lines[rewrites - 1] += f"; {total}"
    elif total:
        lines.insert(rewrites, f"{of}: {total}")
    yield from lines


def _names(group: Sequence[Judged]) -> str:
    names = [found.pods.name[:_LONGEST_NAME] for found in group if found.pods.name]
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f" ({', '.join(names[:_MOST_NAMES])}{more})"


def _total(group: Sequence[Judged], *, is_new: bool) -> str:
    """Return what all pods need together; nothing for one pod, or where it says nothing new.

    Of a workload that is not new the old pods are in what is used.
    """
    counts = [found.pods.count for found in group]
    pods = sum(count or 0 for count in counts)
    context = group[0].context
    if context is None or None in counts or pods <= 1:
        return ""
    cost = total_cost(group, context.policies.catalog)
    if not cost.milli:
        return ""
    reach = group[0].outcome.reach
    above, left = _above(context.tenant, cost, reach), _left(context, reach)
    lacks = is_new and left is not None and cost.milli > left.free_milli
    if not group[0].rewrites and not above and not lacks:
        return ""
    if not above and left is not None and context.tenant is not None:
        of = f"{gpus(left.free_milli)} of {gpus(left.ceiling_milli)}"
        above = f", {context.tenant.name} has {of} left"
    noun = "replicas" if len(group) == 1 and group[0].pods.counts_replicas else "pods"
    return f"{pods} {noun} need {amount(cost.milli)}{above}"


def _left(context: Context, reach: Reach) -> Left | None:
    """Return what quota is left; None where it is not known, or nothing bounds it."""
    tenant = context.tenant
    usage = context.facts.usage.get(tenant.name) if tenant is not None else None
    if tenant is None or usage is None:
        return None
    return left_for_all(tenant, usage, reach)


def total_cost(group: Sequence[Judged], catalog: Catalog) -> Cost:
    """Return what all pods cost; shares of one size are rounded up together."""
    profiles = {g.profile.name: g.profile for found in group for g in found.outcome.grants}
    by_profile: Counter[str] = Counter()
    by_resource: Counter[str] = Counter()
    for found in group:
        pods, cost = found.pods.count or 0, found.outcome.cost
        for name, count in units(found.outcome.grants).items():
            by_profile[name] += count * pods
        for name, count in cost.counts.items() if cost else ():
            by_resource[name] += count * pods
    return price(profiles, by_profile, by_resource, catalog)


def _above(tenant: Tenant | None, cost: Cost, reach: Reach) -> str:
    """Return the first ceiling that all pods together are above, as the end of a sentence."""
    if tenant is None:
        return ""
    excess = next(excesses(tenant, cost, reach.total_ceiling_milli(tenant)), None)
    if excess is None:
        return ""
    more = "" if excess.of == GPUS else f" and {excess.asked}{excess.of}"
    return f"{more}, above {tenant.name}'s ceiling of {excess.ceiling}"
