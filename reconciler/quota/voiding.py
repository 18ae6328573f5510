# SPDX-License-Identifier: Apache-2.0
"""Makes sure that a write which names an old version of a pod has landed, or never will.

Used where nobody can tell any more: for what a past leader has declared, and for writes of our own
whose outcome was lost. What follows from it is not decided here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from reconciler.kube import raw
from reconciler.kube.errors import MalformedAnswerError, NotFoundError
from reconciler.kube.resources import PODS, Target
from reconciler.quota.patches import void_patch


class Patcher(Protocol):
    """The part of a client that changes pods."""

    async def get(self, target: Target) -> Mapping[str, object]:
        """Read an object."""
        ...

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        """Apply a merge patch."""
        ...


class Written(Protocol):
    """A pod as the write in doubt names it."""

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        ...

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def uid(self) -> str:
        """Return its UID."""
        ...

    @property
    def version(self) -> str:
        """Return the resourceVersion that the write is conditional on."""
        ...


class Fate(Enum):
    """What has become of the pod that a write in doubt was for."""

    GONE = "gone"
    """There is none of its name, or another pod has it."""
    CHANGED = "changed"
    """It is newer than the write was made for; the write may be what has changed it."""
    VOIDED = "voided"
    """It was as the write expects until it was changed just now: the write has not landed."""


@dataclass(frozen=True, slots=True)
class Found:
    """The pod as it was answered; empty where it is gone."""

    fate: Fate
    pod: Mapping[str, object] = field(default_factory=dict)


async def void(patcher: Patcher, written: Written, leader: str) -> Found:
    """Return once no write for this version of the pod can land any more.

    Raises ApiError where that is not certain: ConflictError if the pod has changed just now.
    """
    target = Target(PODS, written.name, written.namespace)
    try:
        pod = await patcher.get(target)
        if raw.text(raw.mapping(pod, "metadata"), "uid") != written.uid:
            return Found(Fate.GONE)
        if _version(pod) != written.version:
            return Found(Fate.CHANGED, pod)
        pod = await patcher.patch_merge(target, void_patch(written.version, leader))
    except NotFoundError:
        return Found(Fate.GONE)
    if _version(pod) == written.version:
        raise MalformedAnswerError(f"{target.path}: a change has made no new version")
    return Found(Fate.VOIDED, pod)


def _version(pod: Mapping[str, object]) -> str:
    return raw.text(raw.mapping(pod, "metadata"), "resourceVersion")
