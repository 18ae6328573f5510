# SPDX-License-Identifier: Apache-2.0
"""What others may change in a stored pod, and what not."""

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from policies.checks import device_annotations
from policies.model.keys import QUOTA_GATE, STATE_PREFIX
from policies.model.reasons import Reason
from tests.support.builders import SLUICE, Json, rewritten, update
from tests.support.strategies import allowed_pods, pods, unshared

CHARGE: Final = f"{STATE_PREFIX}charge"
KEYS: Final = ("app", "sluice.dev/gpu-memory", CHARGE, "cdi.k8s.io/x", "gpu-fraction")


@st.composite
def _stored(draw: st.DrawFn) -> Json:
    """Return a pod as it stands in the cluster: waiting, released, or from before Sluice."""
    found: Json = (
        unshared(draw(pods(tame=False))) if draw(st.booleans()) else rewritten(draw(allowed_pods))
    )
    if draw(st.booleans()):
        found["spec"].pop("schedulingGates", None)
        found["metadata"].setdefault("annotations", {})[CHARGE] = "250"
    found["metadata"]["finalizers"] = draw(st.lists(st.sampled_from("ab"), max_size=2))
    return found


@st.composite
def _edited(draw: st.DrawFn, found: Json) -> Json:
    """Return the pod after any change of metadata, gates, tolerations and node selector."""
    new: Json = unshared(found)
    metadata, spec = new["metadata"], new["spec"]
    for section in ("annotations", "labels"):
        for key in draw(st.lists(st.sampled_from(KEYS), max_size=2)):
            keys = metadata.setdefault(section, {})
            if draw(st.booleans()):
                keys[key] = draw(st.sampled_from(["250", "new"]))
            else:
                keys.pop(key, None)
    if draw(st.booleans()):
        metadata.pop("finalizers", None)
    for field in draw(
        st.lists(st.sampled_from(["schedulingGates", "tolerations", "nodeSelector"]))
    ):
        spec.pop(field, None)
    return new


def _pairs() -> st.SearchStrategy[tuple[Json, Json]]:
    return _stored().flatmap(lambda old: st.tuples(st.just(old), _edited(old)))


def _owned(found: Json) -> Any:
    metadata = found["metadata"]
    return [
        {k: v for k, v in (metadata.get(section) or {}).items() if k.startswith(STATE_PREFIX)}
        for section in ("annotations", "labels")
    ]


def _gated(found: Json) -> bool:
    return {"name": QUOTA_GATE} in (found["spec"].get("schedulingGates") or [])


@given(_pairs())
def test_nobody_but_sluice_changes_its_keys_or_takes_its_gate_off(pair: tuple[Json, Json]) -> None:
    old, new = pair
    if _owned(old) != _owned(new) or (_gated(old) and not _gated(new)):
        assert Reason.OWNED_KEY in update(old, new).reasons


@given(_pairs())
def test_sluice_changes_whatever_it_likes(pair: tuple[Json, Json]) -> None:
    assert update(*pair, user=SLUICE).allowed


@given(_pairs())
def test_nobody_adds_an_annotation_that_allocates_devices(pair: tuple[Json, Json]) -> None:
    old, new = (found["metadata"].get("annotations") or {} for found in pair)
    added = [
        key
        for key, value in new.items()
        if old.get(key) != value
        and (key in device_annotations.NAMES or key.startswith(device_annotations.PREFIXES))
    ]

    assert (Reason.DEVICE_ANNOTATION in update(*pair).reasons) == bool(added)


@given(_stored(), st.sampled_from(["finalizers", "ownerReferences", "labels", "annotations"]))
def test_a_pod_can_always_end_and_be_labelled(old: Json, field: str) -> None:
    new: Json = unshared(old)
    metadata = new["metadata"]
    if field == "finalizers":
        metadata.pop("finalizers")
        metadata["deletionTimestamp"] = "2031-05-17T12:00:00Z"
    elif field == "ownerReferences":
        metadata[field] = [{"kind": "Job", "name": "j", "controller": True}]
    else:
        metadata[field] = {**(metadata.get(field) or {}), "example.com/note": "1"}

    assert update(old, new).allowed
    assert update(new, old).allowed


@given(_pairs())
def test_the_mutating_pass_never_changes_an_update(pair: tuple[Json, Json]) -> None:
    decision = update(*pair)

    assert decision.patch == ()
