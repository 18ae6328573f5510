# SPDX-License-Identifier: Apache-2.0
"""What must hold of every share that is found by a need, whatever nodes offer."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import orjson
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.model.facts import ClusterFacts, Facts, NodeFacts
from policies.model.keys import DECISION, STATE_PREFIX
from policies.model.reasons import Reason
from policies.rewrite.claim import read_claim
from policies.rewrite.project import restore
from tests.support.alterations import added, alterations
from tests.support.builders import (
    GPU,
    SHARED,
    Json,
    catalog,
    container,
    facts,
    mutate,
    patched,
    pod,
    policy_set,
    validate,
)
from tests.support.pods import REQUIRED

H100: Final = "NVIDIA-H100-80GB-HBM3"
A100: Final = "NVIDIA-A100-SXM4-80GB"
LIMITS: Final = (
    "GPU_MEMORY_LIMIT",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_DEVICE_MEMORY_LIMIT",
)


@dataclass(frozen=True)
class Form:
    """A candidate, written down anew: what it costs, gives and needs of a node."""

    cost: Fraction
    strength: int
    compute: int
    resource: str
    labels: dict[str, str]
    memory_label: str = "nvidia.com/gpu.memory"
    parts: int = 1
    allow_multiple: bool = False
    at_most_mib: int = 10**9

    def node(self, name: str, mib: int) -> NodeFacts:
        return NodeFacts(name, {**self.labels, self.memory_label: str(mib)}, {self.resource: 8})


def _shared(cost: int, strength: int, strategy: str, product: str, **more: Any) -> Form:
    labels = {
        "nvidia.com/gpu.sharing-strategy": strategy,
        "nvidia.com/gpu.replicas": str(cost),
        "nvidia.com/gpu.product": product,
    }
    return Form(Fraction(1, cost), strength, 100 // cost, SHARED, labels, parts=cost, **more)


def _instance(profile: str, eighths: int, compute: int, at_most_mib: int) -> Form:
    resource = f"nvidia.com/mig-{profile}"
    labels = {"nvidia.com/gpu.product": H100, "nvidia.com/gpu.sharing-strategy": "none"}
    return Form(
        Fraction(eighths, 8),
        3,
        compute,
        resource,
        {**labels, "nvidia.com/mig.config.state": "success"},
        memory_label=f"{resource}.memory",
        at_most_mib=at_most_mib,
    )


WHOLE: Final = {"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.product": H100}
FORMS: Final = {
    "ts-4": _shared(4, 0, "time-slicing", H100, allow_multiple=True),
    "hami-4": replace(_shared(4, 1, "time-slicing", A100)),
    "mps-8": _shared(8, 2, "mps", A100),
    "h100-1g.10gb": _instance("1g.10gb", 1, 14, 9984),
    "h100-2g.20gb": _instance("2g.20gb", 2, 28, 20090),
    "h100-3g.40gb": _instance("3g.40gb", 4, 42, 40448),
    "whole": Form(Fraction(1), 3, 100, GPU, WHOLE, allow_multiple=True),
}
"""In the order in which the policies list them."""

STRENGTHS: Final = ("None", "Cooperative", "Process", "Hardware")

_DOCUMENTS: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: chat}
spec: {namespaces: {names: [chat]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: vision}
spec: {namespaces: {names: [vision]}, profiles: [ts-4, mps-8, "h100-[12]g.*"], cohort: seeing}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: ts-4}
spec:
  {mode: TimeSlice, replicas: 4, products: [NVIDIA-H100-80GB-HBM3], allowMultiple: true,
   shareWith: Cohort}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: hami-4}
spec: {mode: TimeSlice, replicas: 4, products: [NVIDIA-A100-SXM4-80GB], limiter: HAMiCore}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: mps-8}
spec: {mode: MPS, replicas: 8, products: [NVIDIA-A100-SXM4-80GB], shareWith: Tenant}
"""
_POLICY: Final = """
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: fit-%(low)s}
spec:
  order: %(order)s
  match: {labels: {matchLabels: {strength: %(low)s}}}
  rewrite:
    fit:
      memory: {annotation: need, env: GPU_MEMORY_LIMIT, default: 4Gi}
      compute: {annotation: compute}
      candidates: [%(names)s]
  memoryLimit:
    {fromFit: true, minimumStrength: %(strength)s, userValue: Override,
     processes: {annotation: processes}}
"""
POLICIES: Final = policy_set(
    _DOCUMENTS
    + "".join(
        _POLICY
        % {"low": s.lower(), "strength": f'"{s}"', "order": order, "names": ", ".join(FORMS)}
        for order, s in enumerate(STRENGTHS)
    )
)
MAY_USE: Final = {"chat": set(FORMS), "vision": {"ts-4", "mps-8", "h100-1g.10gb", "h100-2g.20gb"}}

# Of one form several nodes, which need not agree in their memory.
offers: Final = st.fixed_dictionaries(
    {
        name: st.lists(
            st.integers(form.at_most_mib - 512, form.at_most_mib + 512)
            if form.at_most_mib < 10**9
            else st.sampled_from([40960, 79000, 81559]),
            max_size=2,
        )
        for name, form in FORMS.items()
    }
)


def cluster(offered: dict[str, list[int]]) -> Facts:
    """Return facts with these nodes."""
    nodes = tuple(
        FORMS[name].node(f"{name}-{index}", mib)
        for name, memories in offered.items()
        for index, mib in enumerate(memories)
    )
    known = facts()
    return replace(known, cluster=ClusterFacts(known.cluster.namespaces, nodes))


_ENV: Final = st.lists(
    st.one_of(
        st.sampled_from(LIMITS).map(lambda name: {"name": name, "value": "6Gi"}),
        st.just(
            {"name": LIMITS[1], "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ),
        st.just({"name": "SHOWN", "value": f"$({LIMITS[0]}) $({LIMITS[1]})"}),
    ),
    max_size=3,
    unique_by=lambda entry: str(entry["name"]),
)
_APART: Final = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "llm"}}}
_AFFINITIES: Final = st.sampled_from(
    [
        {},
        {"affinity": {"podAntiAffinity": {REQUIRED: [_APART]}}},
        {"affinity": {"podAffinity": {REQUIRED: [_APART]}, "podAntiAffinity": {}}},
    ]
)


@dataclass(frozen=True)
class Asked:
    """A pod and what it states."""

    pod: Json
    mib: int
    percent: int
    count: int
    strength: int

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])


@st.composite
def asking(draw: st.DrawFn) -> Asked:
    """Draw a pod of one GPU container that states its need."""
    likely = st.sampled_from([1, 8192, 9984, 9985, 20090, 20091, 20389, 40448])
    mib = draw(likely | likely | st.integers(1, 90000))
    percent = draw(st.sampled_from([0] * 6 + [12, 14, 25, 40, 90]))
    count = draw(st.sampled_from([1] * 5 + [2]))
    strength = draw(st.sampled_from([0, 0, 1, 2, 3]))
    annotations = {"need": f"{mib}Mi", "processes": draw(st.sampled_from(["1", "3"]))}
    if percent:
        annotations["compute"] = f"{percent}"
    built = pod(
        container("main", str(count), env=draw(st.just([]) | _ENV)),
        namespace=draw(st.sampled_from(["chat", "chat", "vision"])),
        annotations=annotations,
        labels={"strength": STRENGTHS[strength].lower()},
        **draw(_AFFINITIES),
    )
    return Asked(orjson.loads(orjson.dumps(built)), mib, percent, count, strength)


def _covering(asked: Asked, offered: dict[str, list[int]]) -> list[str]:
    """Return the candidates that would do, as one would find them by hand."""
    return [
        name
        for name, form in FORMS.items()
        if offered[name]
        and min([*offered[name], form.at_most_mib]) // form.parts >= asked.mib
        and form.compute >= asked.percent
        and form.strength >= asked.strength
        and (asked.count == 1 or form.allow_multiple)
        and name in MAY_USE[asked.namespace]
    ]


@given(asking(), offers)
def test_the_share_given_is_the_cheapest_of_those_that_would_do(
    asked: Asked, offered: dict[str, list[int]]
) -> None:
    decision = mutate(asked.pod, POLICIES, facts=cluster(offered))
    covering = _covering(asked, offered)

    if covering:
        assert decision.profile == min(covering, key=lambda name: FORMS[name].cost)
        assert decision.strength == STRENGTHS[FORMS[decision.profile or ""].strength]
    else:
        assert Reason.NO_CANDIDATE_FITS in decision.reasons
        assert not decision.allowed


@given(asking(), offers, offers)
def test_what_moves_in_the_cluster_between_the_passes_takes_nothing_back(
    asked: Asked, before: dict[str, list[int]], after: dict[str, list[int]]
) -> None:
    decision = mutate(asked.pod, POLICIES, facts=cluster(before))
    assume(decision.allowed)
    second = validate(patched(asked.pod, decision), POLICIES, facts=cluster(after))

    assert second.allowed, second.message
    assert second.profile == decision.profile


@given(asking(), offers, st.sampled_from([*FORMS]))
def test_a_forged_claim_of_another_candidate_gains_nothing_before_it_is_stored(
    asked: Asked, offered: dict[str, list[int]], wished: str
) -> None:
    known = cluster(offered)
    honest = mutate(asked.pod, POLICIES, facts=known)
    assume(honest.allowed)
    forged = patched(asked.pod, honest)
    claim = orjson.loads(forged["metadata"]["annotations"][DECISION])
    claim["profiles"] = {"main": wished}
    forged["metadata"]["annotations"][DECISION] = orjson.dumps(claim).decode()
    again = mutate(forged, POLICIES, facts=known)

    assert (again.profile, again.given, again.charge_milli) == (
        honest.profile,
        honest.given,
        honest.charge_milli,
    )
    assert patched(forged, again) == patched(asked.pod, honest)


@given(asking(), offers)
def test_a_share_that_lacks_or_alters_any_one_thing_of_ours_is_refused(
    asked: Asked, offered: dict[str, list[int]]
) -> None:
    known = cluster(offered)
    decision = mutate(asked.pod, POLICIES, facts=known)
    assume(decision.allowed)
    new = patched(asked.pod, decision)

    for place in added(asked.pod, new):
        for altered in alterations(new, place):
            assert not validate(altered, POLICIES, facts=known).allowed, place


@given(asking(), offers)
def test_restoring_gives_the_variables_affinity_and_labels_back_as_they_were(
    asked: Asked, offered: dict[str, list[int]]
) -> None:
    decision = mutate(asked.pod, POLICIES, facts=cluster(offered))
    assume(decision.allowed)
    new = patched(asked.pod, decision)
    back: Any = restore(new, read_claim(new["metadata"]["annotations"][DECISION]), catalog())

    assert back["spec"]["containers"] == asked.pod["spec"]["containers"]
    assert back["metadata"] == asked.pod["metadata"]
    affinity, own = (one["spec"].get("affinity", {}) for one in (back, asked.pod))
    assert {k: v for k, v in affinity.items() if v} == {k: v for k, v in own.items() if v}


@given(asking(), offers)
def test_no_variable_of_ours_stands_twice_nor_moves_behind_what_refers_to_it(
    asked: Asked, offered: dict[str, list[int]]
) -> None:
    decision = mutate(asked.pod, POLICIES, facts=cluster(offered))
    assume(decision.allowed)
    before, after = (
        [entry["name"] for entry in one["spec"]["containers"][0].get("env", [])]
        for one in (asked.pod, patched(asked.pod, decision))
    )

    assert after[: len(before)] == before
    assert len(set(after)) == len(after)


@given(asking(), offers)
def test_only_forms_without_a_wall_say_whose_they_are(
    asked: Asked, offered: dict[str, list[int]]
) -> None:
    decision = mutate(asked.pod, POLICIES, facts=cluster(offered))
    assume(decision.allowed)
    labels = patched(asked.pod, decision)["metadata"]["labels"]

    has_wall = FORMS[str(decision.profile)].strength == STRENGTHS.index("Hardware")
    assert any(key.startswith(STATE_PREFIX) for key in labels) != has_wall
