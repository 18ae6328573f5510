# SPDX-License-Identifier: Apache-2.0
"""From what containers wrote to whole numbers of GPUs, or to why that cannot be done."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from policies.model.decision import Violation
from policies.model.quantity import QuantityError, parse_quantity
from policies.model.reasons import Reason
from policies.pod.effective import effective
from policies.pod.view import Container, ContainerKind, GpuAmount, PodView
from policies.vendors import GpuName

MAX_DEVICES = 100_000
"""More devices than any cluster has: a count above it is refused before it enters arithmetic."""

MAX_NAMES = 1000
"""More GPU-like names in a pod than anybody has a use for: each costs time to refuse."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The positive GPU counts of one container, with the names told apart."""

    container: Container
    counts: Mapping[str, int]
    names: tuple[GpuName, ...]
    zeros: Mapping[str, int]


def read_asked(pod: PodView) -> tuple[tuple[Asked, ...], tuple[Violation, ...]]:
    """Return what each container that names a GPU asks, and a violation for each bad amount."""
    named = sum(len(container.gpus) for container in pod.containers)
    if named > MAX_NAMES:
        message = f"{named} GPU resources are named; at most {MAX_NAMES} are decided on"
        return (), (Violation(Reason.UNKNOWN_GPU_RESOURCE, message),)
    asked: list[Asked] = []
    violations: list[Violation] = []
    for container in pod.containers:
        if not container.gpus:
            continue
        counts: dict[str, int] = {}
        zeros: dict[str, int] = {}
        for amount in container.gpus:
            count = _count(container, amount)
            if isinstance(count, Violation):
                violations.append(count)
            else:
                (counts if count else zeros)[amount.name.resource] = count
        names = tuple(a.name for a in container.gpus if a.name.resource in counts)
        asked.append(Asked(container, counts, names, zeros))
    return tuple(asked), tuple(violations)


def effective_counts(
    amounts: Iterable[tuple[ContainerKind, Mapping[str, int]]],
) -> dict[str, int]:
    """Return a pod's effective request, at once for the usual pod of one GPU container."""
    listed = [(kind, counts) for kind, counts in amounts if counts]
    if len(listed) == 1 and listed[0][0] is not ContainerKind.EPHEMERAL:
        return {name: count for name, count in sorted(listed[0][1].items()) if count > 0}
    return effective(listed)


def _count(container: Container, amount: GpuAmount) -> int | Violation:
    where = f"container {container.name}: {amount.name.resource}"
    if container.kind is ContainerKind.EPHEMERAL:
        return Violation(
            Reason.REQUEST_WITHOUT_LIMIT, f"{where}: a debug container cannot have resources"
        )
    if amount.limit is None:
        return Violation(
            Reason.REQUEST_WITHOUT_LIMIT,
            f"{where} is in requests but not in limits: write it under limits",
        )
    limit = _whole(where, amount.limit)
    if isinstance(limit, Violation) or amount.request is None:
        return limit
    request = _whole(where, amount.request)
    if isinstance(request, Violation):
        return request
    if request != limit:
        return Violation(
            Reason.REQUEST_WITHOUT_LIMIT,
            f"{where} has request {request} and limit {limit}: they must be equal",
        )
    return limit


def _whole(where: str, value: object) -> int | Violation:
    shown = repr(value)[:64]
    try:
        quantity = parse_quantity(value)
    except QuantityError:
        return Violation(Reason.INVALID_QUANTITY, f"{where} {shown} is not a quantity")
    if quantity < 0:
        return Violation(Reason.INVALID_QUANTITY, f"{where} {shown} must not be negative")
    if quantity.denominator != 1:
        return Violation(
            Reason.INVALID_QUANTITY,
            f"{where} {shown} must be an integer: ask for 1, the policy gives the share",
        )
    if quantity > MAX_DEVICES:
        return Violation(
            Reason.INVALID_QUANTITY,
            f"{where} {shown} is more than {MAX_DEVICES}, the most accepted",
        )
    return int(quantity)
