# SPDX-License-Identifier: Apache-2.0
"""The one conditional write that is a release. When it is sent, and what follows, is not here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from policies.model.request import JsonObject
from policies.model.term import LeaseTerm
from policies.pod.reading import MalformedError
from policies.quota.charge import ChargeRecord
from policies.quota.pods import QuotaPod
from policies.rewrite.pinning import Pins
from reconciler.kube import raw
from reconciler.kube.errors import ConflictError, InvalidError, MalformedAnswerError
from reconciler.kube.intents import Intent, IntentKind
from reconciler.kube.resources import PODS, Target
from reconciler.quota.patches import is_gated, pinning, release_patch
from reconciler.quota.voiding import Patcher


class Release(Protocol):
    """A pod to let go, what it is charged, and what pins it."""

    @property
    def pod(self) -> QuotaPod:
        """The pod as it was decided on."""
        ...

    @property
    def charge(self) -> ChargeRecord:
        """What it is charged."""
        ...

    @property
    def pins(self) -> Pins:
        """What pins it to the pool that it is charged to."""
        ...


Prefer = Callable[[Mapping[str, object]], Sequence[str]]
"""Names the nodes that a pod, as it will be released, should prefer, the best first."""


async def write_release(
    patcher: Patcher, release: Release, term: LeaseTerm | None, prefer: Prefer | None = None
) -> Mapping[str, object]:
    """Charge a pod, pin it and let it go; return it as it is then. Raises ApiError."""
    pod, pins = release.pod, release.pins
    target = Target(PODS, pod.name, pod.namespace)
    spec: JsonObject = {"nodeSelector": dict(pins.node_selector)} if pins.node_selector else {}
    own = dict(pod.shape.constraints.node_selector)
    if prefer is not None or pins.expressions or own.keys() & pins.node_selector.keys():
        # Terms of affinity can only be written whole, and views do not keep them whole; and a
        # label that is selected already cannot be changed.
        spec = _pinning(await patcher.get(target), pins, prefer)
    body = release_patch(pod.version, release.charge, spec, pod.reason, term)
    answer = await patcher.patch_merge(target, body)
    metadata = raw.mapping(answer, "metadata")
    version = raw.text(metadata, "resourceVersion")
    if raw.text(metadata, "uid") != pod.uid or version in ("", pod.version):
        message = f"{target.path}: the answer is not the pod that was written"
        raise MalformedAnswerError(message, may_have_happened=True)
    return answer


def intent_of(release: Release) -> Intent:
    """Return what is declared before a release is sent."""
    pod = release.pod
    return Intent(
        kind=IntentKind.RELEASE,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        version=pod.version,
        charge=release.charge.to_annotation(),
    )


def _pinning(pod: Mapping[str, object], pins: Pins, prefer: Prefer | None) -> JsonObject:
    try:
        if not is_gated(pod):
            raise ConflictError("its gates have changed", status=409)
        return pinning(pod, pins, prefer)
    except MalformedError as error:
        raise InvalidError(f"it cannot be pinned: {error}") from error
