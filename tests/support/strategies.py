# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies: wild pods that the API server would take, and JSON that it would not."""

from typing import Any, Final

import orjson
from hypothesis import strategies as st

from policies.model.keys import DECISION, QUOTA_GATE, STATE_PREFIX, VISIBLE_DEVICES, VOID
from tests.support.builders import (
    EXCLUSIVE,
    GPU,
    MIG,
    SHARED,
    TOLERATION,
    Json,
    container,
    pod,
    policy_set,
    rewritten,
)

NAMESPACES: Final = ("chat", "vision", "lab", "other")

json_values: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text("abc/~.-", max_size=4), children)
    ),
    max_leaves=8,
)
"""Any JSON value."""


def spellings(count: int) -> st.SearchStrategy[object]:
    """Return the ways to write a whole number as a quantity."""
    plain = str(count)
    written = [count, plain, f"+{plain}", f"0{plain}", f"{plain}.", f"{plain}.0", f"{plain}e0"]
    return st.sampled_from([*written, float(count), f"{count}000m", f"{count}E0"])


bad_amounts: Final = st.sampled_from(
    [
        "500m",
        "0.5",
        0.5,
        "-1",
        -3,
        "1K",
        "NaN",
        "",
        "1_0",
        "\u0661",
        2**63 - 1,
        "9e18",
        "2",
        True,
        [],
    ]
)
"""Amounts that some profile or no container can have."""


@st.composite
def resources(draw: st.DrawFn, *, tame: bool) -> Json:
    """Return a container's resources: most ask for one GPU, some for none or for a share."""
    rare = [] if tame else [MIG, "amd.com/gpu", "nvidia.com/GPU"]
    name = draw(st.sampled_from([*[GPU] * 8, SHARED, "cpu", *rare]))
    count = draw(st.sampled_from([1] * 8 + [0] * 3 + [2]))
    amount = draw(spellings(count))
    if not tame and draw(st.integers(0, 3)) == 0:
        amount = draw(bad_amounts)
    built: Json = {"limits": {"cpu": "2", name: amount}, "requests": {name: amount}}
    if draw(st.integers(0, 19)) == 0:
        built["limits"][SHARED] = built["requests"][SHARED] = "1"
    left_out = draw(st.sampled_from(["", "", "requests", *([] if tame else ["limits"])]))
    built.pop(left_out, None)
    return built


_env: Final = st.lists(
    st.sampled_from(
        [
            {"name": "MODEL", "value": "llm"},
            {"name": "MODEL", "value": "llm"},
            {"name": VISIBLE_DEVICES, "value": VOID},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]
    ),
    max_size=3,
)
_wild_env: Final = st.lists(
    st.sampled_from(
        [
            {"name": VISIBLE_DEVICES, "value": "all"},
            {"name": VISIBLE_DEVICES, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": VISIBLE_DEVICES, "value": VOID, "valueFrom": None},
            {"name": "CUDA_DISABLE_CONTROL", "value": "true"},
            {"name": "NVIDIA_IMEX_CHANNELS", "value": "0"},
        ]
    ),
    max_size=2,
)


@st.composite
def containers(draw: st.DrawFn, name: str, *, tame: bool) -> Json:
    """Return a container; about half of them ask for GPUs."""
    built = container(name)
    if draw(st.booleans()):
        built["resources"] = draw(resources(tame=tame))
    elif draw(st.booleans()):
        built["resources"] = draw(st.sampled_from([{}, {"limits": None}, {"limits": {"cpu": 1}}]))
    if draw(st.booleans()):
        built["env"] = draw(_env) + ([] if tame else draw(_wild_env))
    if not tame and draw(st.integers(0, 9)) == 0:
        built["securityContext"] = {"privileged": True}
    return built


def _demanded(kind: str) -> list[Json]:
    """Return what profiles demand of that kind, since pods have some of it already."""
    placements = [policy_set().profiles[p].placement for p in ("slice-4", "whole", "h100-1g.10gb")]
    if kind == "expressions":
        return [e.to_json() for placement in placements for e in placement.expressions]
    return [{key: value} for p in placements for key, value in p.node_selector.items()]


_expressions: Final = st.lists(
    st.sampled_from(
        [{"key": "zone", "operator": "In", "values": ["a", "b"]}, *_demanded("expressions")]
    ),
    max_size=3,
)
_terms: Final = st.lists(
    st.one_of(
        st.just({}),
        st.fixed_dictionaries({"matchExpressions": _expressions}),
        st.fixed_dictionaries(
            {"matchFields": st.just([{"key": "metadata.name", "operator": "In", "values": ["n"]}])},
            optional={"matchExpressions": _expressions},
        ),
    ),
    max_size=3,
)
_required: Final = "requiredDuringSchedulingIgnoredDuringExecution"
affinities: Final = st.one_of(
    st.sampled_from([None, {}, {"nodeAffinity": None}, {"nodeAffinity": {}}]),
    st.just({"podAffinity": {_required: []}}),
    st.fixed_dictionaries(
        {
            "nodeAffinity": st.fixed_dictionaries(
                {},
                optional={
                    _required: st.fixed_dictionaries({"nodeSelectorTerms": _terms})
                    | st.sampled_from([None, {}]),
                    "preferredDuringSchedulingIgnoredDuringExecution": st.just([]),
                },
            )
        },
        optional={"podAntiAffinity": st.just({})},
    ),
)
"""Affinities with none, one or several terms, among them empty ones and ones of ours."""

tolerations: Final = st.lists(
    st.sampled_from(
        [
            TOLERATION,
            {"key": GPU, "operator": "Exists"},
            {"operator": "Exists"},
            {"key": "dedicated", "value": "ml", "effect": "NoSchedule"},
        ]
    ),
    max_size=3,
)
node_selectors: Final[st.SearchStrategy[Json | None]] = st.one_of(
    st.none(),
    st.just({}),
    st.just({"zone": "a"}),
    st.sampled_from([*_demanded("node_selector")[:2], {"nvidia.com/gpu.replicas": "8"}]),
)
gates: Final = st.lists(
    st.sampled_from([QUOTA_GATE, "kueue.x-k8s.io/admission"]), unique=True, max_size=2
).map(lambda names: [{"name": name} for name in names])


def _forged() -> list[str]:
    """Return decision annotations: one that is real for another pod, and some that never were."""
    real = rewritten(pod(container("c0", "1"), container("c1", "1")))
    text: str = real["metadata"]["annotations"][DECISION]
    return [text, text.replace('"1"', '"8"'), text.replace("slice-4", "whole"), "{}", "", '{"v":1}']


_FORGED: Final = _forged()


@st.composite
def metadata_annotations(draw: st.DrawFn) -> Json:
    """Return annotations, among them keys of Sluice and claims that somebody made up."""
    found: Json = draw(
        st.dictionaries(
            st.sampled_from(["team", "sluice.dev/gpu-memory", f"{STATE_PREFIX}charge"]),
            st.text("ab", max_size=2),
            max_size=2,
        )
    )
    if draw(st.integers(0, 3)) == 0:
        found[EXCLUSIVE] = draw(st.sampled_from(["true", "false", ""]))
    if draw(st.integers(0, 5)) == 0:
        found[DECISION] = draw(st.sampled_from(_FORGED))
    return found


@st.composite
def pods(draw: st.DrawFn, *, tame: bool = True) -> Json:
    """Return a pod; a tame one is refused for its policies alone, if at all."""
    names = iter(f"c{index}" for index in range(9))
    init = draw(st.lists(st.sampled_from([None, "Always"]), max_size=2))
    inits = [
        draw(containers(next(names), tame=tame)) | ({"restartPolicy": policy} if policy else {})
        for policy in init
    ]
    apps = [draw(containers(next(names), tame=tame)) for _ in range(draw(st.integers(1, 3)))]
    parts: Json = {"initContainers": inits} if inits else {}
    optional: dict[str, st.SearchStrategy[Any]] = {
        "tolerations": tolerations,
        "nodeSelector": node_selectors,
        "affinity": affinities,
        "schedulingGates": gates,
        "annotations": metadata_annotations(),
        "labels": st.dictionaries(st.sampled_from(["app", f"{STATE_PREFIX}x"]), st.just("a")),
    }
    for key, strategy in optional.items():
        if draw(st.booleans()):
            parts[key] = draw(strategy)
    namespaces = st.sampled_from(NAMESPACES[:-1] if tame else NAMESPACES)
    built: Json = unshared(pod(*apps, namespace=draw(namespaces), **parts))
    return built


def unshared(value: Any) -> Any:
    """Return JSON of which no two parts are the same object, as it comes from a parser."""
    return orjson.loads(orjson.dumps(value))


allowed_pods: Final = st.sampled_from(
    [
        pod(container("c0", "1"), container("c1"), tolerations=[TOLERATION]),
        pod(container("c0", 1), initContainers=[container("c1", "1")], nodeSelector={"zone": "a"}),
        pod(container("c0", "1"), namespace="vision", affinity={"podAffinity": {}}),
        pod(container("c0", "8"), namespace="lab", annotations={EXCLUSIVE: "true"}),
    ]
).map(unshared)
"""A few pods that are rewritten, each to another form."""


@st.composite
def mutilated(draw: st.DrawFn) -> object:
    """Return a pod with one value, wherever it stands, replaced by any JSON."""
    whole: Json = {"pod": draw(pods(tame=False))}
    parent, key = draw(st.sampled_from(places(whole)))
    parent[key] = draw(json_values)
    return whole["pod"]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a JSON value, as its parent and the key or index there."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    nested = (places(value[key]) for key in keys if isinstance(value[key], dict | list))
    return [*((value, key) for key in keys), *(place for found in nested for place in found)]
