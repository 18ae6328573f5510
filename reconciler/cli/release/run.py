# SPDX-License-Identifier: Apache-2.0
"""`sluice release --all`: finds every gated pod, takes the gates off, and records each.

New pods may come while it works, so it looks again until none is left. What is printed, and who is
asked before, is not known here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from reconciler.cli.reading import Lister, viewed
from reconciler.cli.release.actuate import Patcher, Releaser, Result
from reconciler.cli.release.pods import Force, GatedPod, gated_pod
from reconciler.kube.client import Client
from reconciler.kube.errors import ForbiddenError, NotFoundError
from reconciler.kube.lease import read_lease
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import PODS, Selection, Target
from reconciler.runtime.audit_release import ForcedReleaseEntry, Released, to_line

_ROUNDS: Final = 5
"""How often it looks again: who makes pods without end would keep it for ever."""
_NOT_PLACED: Final = "spec.nodeName="
"""A gated pod is on no node."""


class AuditLines(Protocol):
    """Where audit lines go."""

    def record_lines(self, lines: Sequence[bytes]) -> None:
        """Queue whole lines. Never blocks and never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Orders:
    """What is to be done: everywhere, or in one namespace; `acting_as` is for the record."""

    namespace: str
    force: Force
    acting_as: str
    dry_run: bool = False


@dataclass(slots=True)
class Tally:
    """What became of all pods, and which have their gate still."""

    released: int = 0
    gone: int = 0
    left: list[Result] = field(default_factory=list)
    unseen: int = 0
    """Pods that have come since and were not touched."""

    def add(self, result: Result) -> None:
        """Count one result."""
        if result.is_left:
            self.left.append(result)
        elif result.is_done:
            self.released += 1
        else:
            self.gone += 1


class Pods(Lister, Patcher, Protocol):
    """The part of a client that lists pods and writes to them."""


async def gated_pods(client: Lister, namespace: str) -> list[GatedPod]:
    """Return all pods with Sluice's gate; in every namespace where none is named."""
    selection = Selection(PODS, namespace=namespace, field_selector=_NOT_PLACED)
    return [pod for pod in await viewed(client, selection, gated_pod) if pod is not None]


async def leader(client: Client, lease: Target) -> str:
    """Return who holds the Lease, empty where nobody does or it may not be read."""
    try:
        return read_lease(await client.get(lease)).record.holder
    except (NotFoundError, ForbiddenError):
        return ""


async def release_all(
    client: Pods,
    orders: Orders,
    audit: AuditLines,
    progress: Callable[[int, int], None],
    runtime: Runtime,
) -> Tally:
    """Take every gate off; `progress` is told how many are done of how many that are known.

    Raises ApiError where pods cannot be listed.
    """
    tally, tried = Tally(), 0
    seen: set[str] = set()
    releaser = Releaser(client, orders.force, runtime, orders.dry_run)

    def done(result: Result) -> None:
        tally.add(result)
        audit.record_lines([to_line(_entry(result, orders, runtime))])
        progress(tally.released + tally.gone + len(tally.left), tried)

    for _ in range(1 if orders.dry_run else _ROUNDS):
        found = [pod for pod in await gated_pods(client, orders.namespace) if pod.uid not in seen]
        if not found:
            return tally
        tried += len(found)
        seen |= {pod.uid for pod in found}
        progress(tried - len(found), tried)
        await releaser.release(found, done)
    if not orders.dry_run:
        later = await gated_pods(client, orders.namespace)
        tally.unseen = sum(pod.uid not in seen for pod in later)
    return tally


def _entry(result: Result, orders: Orders, runtime: Runtime) -> ForcedReleaseEntry:
    pod = result.pod
    return ForcedReleaseEntry(
        pod=Released(pod.namespace, pod.name, pod.uid, pod.version, pod.reason),
        outcome=result.outcome,
        user=orders.force.user,
        acting_as=orders.acting_as,
        reason=orders.force.reason,
        at=runtime.wall_clock(),
        message=result.message,
        dry_run=orders.dry_run,
    )
