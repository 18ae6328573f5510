# SPDX-License-Identifier: Apache-2.0
"""The pods that wait for quota, by tenant: alike ones together, and gangs.

Kept so that a pass costs by group and not by pod. Who goes first between tenants, and whether
there is room, must not be here.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from policies.quota.gangs import GangKey, Members, gang_key
from policies.quota.pods import QuotaPod, Shape

Age: TypeAlias = tuple[int, str, str, str]
"""Order of pods of one priority: when made, name, namespace, UID."""


def age(pod: QuotaPod) -> Age:
    """Return what pods of one priority are ordered by; the oldest is the least."""
    return pod.created_at, pod.name, pod.namespace, pod.uid


@dataclass(eq=False, slots=True)
class Group:
    """Waiting pods of one tenant that differ in nothing that matters but their age.

    `reclaimable` tells whether they could be taken back once released; `held_until`, until when
    (Unix seconds) they may not borrow, 0 for no such time.
    """

    priority: int
    shape: Shape
    reclaimable: bool
    held_until: int = 0
    _ages: list[Age] = field(default_factory=list)
    _pods: dict[str, QuotaPod] = field(default_factory=dict)
    _listed: tuple[QuotaPod, ...] | None = None

    @property
    def pods(self) -> tuple[QuotaPod, ...]:
        """Return them, the oldest first."""
        if self._listed is None:
            self._listed = tuple(self._pods[uid] for *_, uid in self._ages)
        return self._listed

    @property
    def first(self) -> Age:
        """Return the age of the oldest."""
        return self._ages[0]

    def __len__(self) -> int:
        return len(self._ages)

    def put(self, pod: QuotaPod) -> None:
        """Add a pod, or take a newer view of it."""
        if pod.uid not in self._pods:
            insort(self._ages, age(pod))
        self._pods[pod.uid] = pod
        self._listed = None

    def remove(self, pod: QuotaPod) -> None:
        """Take a pod out."""
        del self._pods[pod.uid]
        del self._ages[bisect_left(self._ages, age(pod))]
        self._listed = None


_GroupKey: TypeAlias = tuple[int, int, bool, int]


@dataclass(eq=False, slots=True)
class TenantQueue:
    """What of one tenant waits; `gangs` are those with waiting members, which are in no group.

    `version` is another one after each change.
    """

    version: int = 0
    gangs: dict[GangKey, Members] = field(default_factory=dict)
    _groups: dict[_GroupKey, Group] = field(default_factory=dict)

    @property
    def groups(self) -> Collection[Group]:
        """Return the groups, in no order that means anything."""
        return self._groups.values()

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing waits."""
        return not (self._groups or self.gangs)

    @property
    def pods(self) -> Iterable[QuotaPod]:
        """Return every pod that waits, in no order that means anything."""
        for group in self.groups:
            yield from group.pods
        for gang in self.gangs.values():
            yield from gang.waiting.values()

    def group_of(self, pod: QuotaPod, *, reclaimable: bool, held_until: int) -> Group:
        """Return the group that a pod belongs to, a new one if need be."""
        # A group keeps its shape alive, so that the shape's identity cannot come to mean another.
        key = (pod.priority, id(pod.shape), reclaimable, held_until)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = Group(pod.priority, pod.shape, reclaimable, held_until)
        return found

    def drop_if_empty(self, group: Group) -> None:
        """Forget a group whose last pod has left."""
        if not len(group):
            del self._groups[group.priority, id(group.shape), group.reclaimable, group.held_until]


@dataclass(frozen=True, slots=True)
class _Entry:
    pod: QuotaPod
    tenant: str
    reclaimable: bool
    held_until: int
    group: Group | None = None
    gang: GangKey | None = None


class Queue:
    """All that waits, and the released and ended members of gangs beside it."""

    def __init__(self) -> None:
        self._tenants: dict[str, TenantQueue] = {}
        self._entries: dict[str, _Entry] = {}
        self._gangs: dict[GangKey, Members] = {}
        self._declared: dict[GangKey, int] = {}
        self._changes = 0

    @property
    def tenants(self) -> Mapping[str, TenantQueue]:
        """Return the queues that are not empty; "" has the pods that no tenant owns."""
        return self._tenants

    def __contains__(self, uid: object) -> bool:
        """Tell whether a pod waits, or is of a gang."""
        return uid in self._entries

    def gang_of(self, pod: QuotaPod) -> Members | None:
        """Return what is known of a pod's gang."""
        key = gang_key(pod)
        return None if key is None else self._gangs.get(key)

    def declared(self) -> Mapping[GangKey, int]:
        """Return the sizes that PodGroups state, as they are now."""
        return dict(self._declared)

    def is_reclaimable(self, uid: str) -> bool:
        """Tell what was said of a pod that waits."""
        entry = self._entries.get(uid)
        return entry is None or entry.reclaimable

    def held_until(self, uid: str) -> int:
        """Return until when a pod that waits may not borrow, 0 for no such time."""
        entry = self._entries.get(uid)
        return 0 if entry is None else entry.held_until

    def put(self, pod: QuotaPod, tenant: str, *, reclaimable: bool, held_until: int = 0) -> None:
        """Take a pod as it is now. `tenant` is its owner, empty for none."""
        self.remove(pod.uid)
        key = gang_key(pod) if pod.deleted_at is None else None  # else it is of no gang any more
        if key is not None:
            self._entries[pod.uid] = _Entry(pod, tenant, reclaimable, held_until, gang=key)
            self._put_member(pod, tenant, key)
        elif pod.is_waiting:
            queue = self._tenants.setdefault(tenant, TenantQueue())
            group = queue.group_of(pod, reclaimable=reclaimable, held_until=held_until)
            group.put(pod)
            self._entries[pod.uid] = _Entry(pod, tenant, reclaimable, held_until, group=group)
            self._touch(tenant)

    def remove(self, uid: str) -> None:
        """Forget a pod; an unknown one is none."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return
        if entry.gang is not None:
            self._remove_member(entry.gang, uid)
        elif entry.group is not None:
            queue = self._tenants[entry.tenant]
            entry.group.remove(entry.pod)
            queue.drop_if_empty(entry.group)
            self._touch(entry.tenant)

    def declare(self, key: GangKey, size: int | None) -> None:
        """Know the size that a PodGroup states; None if there is no such PodGroup."""
        if size is None:
            self._declared.pop(key, None)
        else:
            self._declared[key] = size
        gang = self._gangs.get(key)
        if gang is not None:
            gang.declared = size
            self._touch(gang.tenant)

    def _put_member(self, pod: QuotaPod, tenant: str, key: GangKey) -> None:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Members(key, tenant, self._declared.get(key))
        elif gang.tenant != tenant:
            # Its namespace has moved; a gang stands in one line only.
            self._leave(gang)
            gang.tenant = tenant
        gang.put(pod)
        if gang.waiting:
            self._tenants.setdefault(tenant, TenantQueue()).gangs[key] = gang
            self._touch(tenant)

    def _remove_member(self, key: GangKey, uid: str) -> None:
        gang = self._gangs[key]
        gang.remove(uid)
        if gang.is_empty:
            del self._gangs[key]
        if gang.waiting:
            self._touch(gang.tenant)
        else:
            self._leave(gang)

    def _leave(self, gang: Members) -> None:
        queue = self._tenants.get(gang.tenant)
        if queue is not None and queue.gangs.pop(gang.key, None) is not None:
            self._touch(gang.tenant)

    def _touch(self, tenant: str) -> None:
        queue = self._tenants.get(tenant)
        if queue is None:
            return
        self._changes += 1
        queue.version = self._changes
        if queue.is_empty:
            del self._tenants[tenant]
