# SPDX-License-Identifier: Apache-2.0
"""What all previewed pods ask for and are given together, each as often as it will be made."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from policies.model.decision import Decision
from policies.model.policyset import PolicySet
from policies.preview.preview import Preview


@dataclass(frozen=True, slots=True)
class Total:
    """How many pods ask for GPUs, for how many, and what those that are not refused are charged.

    `uncounted` are labels of pods whose number nothing says.
    """

    pods: int
    devices: int
    charge_milli: int
    refused: int
    uncounted: tuple[str, ...]


def total(policies: PolicySet, previews: Iterable[Preview]) -> Total:
    """Add up; shares of one size are rounded up together, as they are charged."""
    asking = [preview for preview in previews if preview.decision.asked]
    counted = [(preview.pod.count or 0, preview.decision) for preview in asking]
    return Total(
        pods=sum(count for count, _ in counted),
        devices=sum(count * sum(decision.asked.values()) for count, decision in counted),
        charge_milli=_charge_milli(policies, counted),
        refused=sum(count for count, decision in counted if not decision.allowed),
        uncounted=tuple(p.pod.label for p in asking if p.pod.count is None),
    )


def _charge_milli(policies: PolicySet, counted: Iterable[tuple[int, Decision]]) -> int:
    milli, units = 0, Counter[str]()
    for count, decision in counted:
        if not decision.allowed or decision.charge_milli is None:
            continue
        given, profile = sum(decision.given.values()), policies.profiles.get(decision.profile or "")
        if profile is not None and decision.charge_milli == profile.charge.milli(given):
            units[profile.name] += count * given
        else:  # forms of several sizes, which are rounded for each pod
            milli += count * decision.charge_milli
    return milli + sum(policies.profiles[name].charge.milli(n) for name, n in units.items())
