# SPDX-License-Identifier: Apache-2.0
"""A policy beside the profiles that it may give: too weak, too small, not allowed, never given."""

import pytest

from policies.documents.load import LoadResult
from tests.unit.documents.loading import COMPLETE, TENANT, Loader, document, errors, lines

H100 = "NVIDIA-H100-80GB-HBM3"
PROFILES = "---\n".join(
    [
        document("SharingProfile", "mps-4", f"mode: MPS\nreplicas: 4\nproducts: [{H100}]"),
        document("SharingProfile", "turns-4", f"mode: TimeSlice\nreplicas: 4\nproducts: [{H100}]"),
        document("SharingProfile", "turns-8", f"mode: TimeSlice\nreplicas: 8\nproducts: [{H100}]"),
        document(
            "SharingProfile",
            "many-4",
            f"mode: TimeSlice\nreplicas: 4\nallowMultiple: true\nproducts: [{H100}]",
        ),
        document("SharingProfile", "board", f"mode: Exclusive\nproducts: [{H100}]"),
        document(
            "SharingProfile",
            "hami-4",
            f"mode: TimeSlice\nreplicas: 4\nlimiter: HAMiCore\nproducts: [{H100}]",
        ),
    ]
)


def load(load_texts: Loader, spec: str, *others: str) -> LoadResult:
    policy = document("GPUPolicy", "mine", f"order: 1\nmatch: {{labels: {{matchLabels: {{a: b}}}}}}"
                      f"\n{spec}")  # fmt: skip
    return load_texts(f"{COMPLETE}---\n{PROFILES}", policy, *others)


def fit(candidates: str, memory: str = "8Gi") -> str:
    return f"rewrite: {{fit: {{memory: {{default: {memory}}}, candidates: {candidates}}}}}"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            "rewrite: {profile: turns-4}\nmemoryLimit: {value: 4Gi, minimumStrength: Cooperative}",
            (
                "8:46: error: GPUPolicy/mine: spec.memoryLimit.minimumStrength: "
                "no form that the policy gives is as strong: turns-4 has None"
            ),
        ),
        (
            "rewrite: {profile: hami-4}\nmemoryLimit: {value: 4Gi, minimumStrength: Process}",
            "no form that the policy gives is as strong: hami-4 has Cooperative",
        ),
        (
            (
                f"{fit('[turns-8, hami-4, mps-4]')}\n"
                "memoryLimit: {fromFit: true, minimumStrength: Hardware}"
            ),
            "as strong: turns-8 has None, hami-4 has Cooperative, mps-4 has Process",
        ),
    ],
)
def test_a_strength_that_no_form_has_is_refused(load_texts: Loader, spec: str, error: str) -> None:
    found = errors(load(load_texts, spec))

    assert len(found) == 1, found
    assert error in found[0]


@pytest.mark.parametrize(
    "spec",
    [
        "rewrite: {profile: turns-4}\nmemoryLimit: {value: 4Gi}",
        "rewrite: {profile: hami-4}\nmemoryLimit: {value: 4Gi, minimumStrength: Cooperative}",
        "rewrite: {profile: mps-4}\nmemoryLimit: {value: 4Gi, minimumStrength: Process}",
        "rewrite: {profile: board}\nmemoryLimit: {value: 4Gi, minimumStrength: Hardware}",
        f"{fit('[turns-8, mps-4]')}\nmemoryLimit: {{fromFit: true, minimumStrength: Process}}",
    ],
)
def test_one_form_that_is_as_strong_is_enough(load_texts: Loader, spec: str) -> None:
    assert lines(load(load_texts, spec)) == []


def test_a_missing_candidate_might_be_the_strong_one(load_texts: Loader) -> None:
    spec = f"{fit('[turns-8, nosuch]')}\nmemoryLimit: {{fromFit: true, minimumStrength: Process}}"
    found = errors(load(load_texts, spec))

    assert len(found) == 1
    assert 'there is no profile "nosuch"' in found[0]


def test_an_exclusive_policy_fits_among_whole_gpus_only(load_texts: Loader) -> None:
    found = errors(load(load_texts, f"{fit('[turns-8, board]')}\nexclusive: true"))

    assert len(found) == 1, found
    assert "spec.exclusive: needs candidates of mode Exclusive; turns-8 is TimeSlice" in found[0]
    assert errors(load(load_texts, f"{fit('[board, whole]')}\nexclusive: true")) == []


@pytest.mark.parametrize(
    ("candidates", "given_instead"),
    [
        ("[turns-8, turns-4]", None),
        ("[h100-1g.10gb, h100-2g.20gb, h100-3g.40gb, board]", None),
        # As much memory, and dearer or as dear and listed later.
        ("[mps-4, turns-4]", ("turns-4", "mps-4")),
        ("[turns-4, hami-4]", None),
        ("[hami-4, turns-4]", ("turns-4", "hami-4")),
        ("[h100-1g.10gb, h100-1g.10gb.me]", ("h100-1g.10gb.me", "h100-1g.10gb")),
        ("[h100-4g.40gb, h100-3g.40gb]", ("h100-3g.40gb", "h100-4g.40gb")),
        ("[h100-3g.40gb, h100-4g.40gb]", None),  # dearer in nothing, and faster
        ("[h100-1g.10gb, h100-1g.20gb]", None),
        ("[turns-4, many-4]", None),  # of which a container may have several
        ("[many-4, turns-4]", ("turns-4", "many-4")),
        # Other nodes, or memory that only a node tells.
        ("[h100-1g.10gb, a100-80gb-1g.10gb]", None),
        ("[slice-4, turns-4]", None),
        ("[board, whole]", None),
    ],
)
def test_a_candidate_that_another_always_goes_before_is_pointed_out(
    load_texts: Loader, candidates: str, given_instead: tuple[str, str] | None
) -> None:
    found = lines(load(load_texts, fit(candidates)))

    if given_instead is None:
        assert found == []
        return
    later, better = given_instead
    names = candidates.strip("[]").split(", ")
    assert len(found) == 1, found
    assert (
        f"warning: GPUPolicy/mine: spec.rewrite.fit.candidates[{names.index(later)}]: is given "
        f"only where no node offers {better}, which costs no more and has as much memory"
    ) in found[0]


def test_a_candidate_for_those_who_may_not_use_the_other_is_none(load_texts: Loader) -> None:
    other = TENANT.replace("chat", "poor") + "  profiles: [turns-4, slice-4]\n"

    assert lines(load(load_texts, fit("[mps-4, turns-4]"), other)) == []


def test_a_candidate_that_no_matched_tenant_may_use_is_pointed_out(load_texts: Loader) -> None:
    tenants = "---\n".join(
        document("Tenant", name, f"namespaces: {{names: [{name}]}}\nprofiles: {profiles}")
        for name, profiles in [("a", "[turns-8, slice-4]"), ("b", '["h100-*", slice-4]')]
    )
    spec = fit("[turns-8, h100-3g.40gb, board]").replace("rewrite:", "x:")
    policy = document("GPUPolicy", "p", f"order: 1\nmatch: {{tenants: [a, b]}}\n{spec}")
    found = lines(
        load_texts(f"{COMPLETE}---\n{PROFILES}", tenants, policy.replace("x:", "rewrite:"))
    )

    assert len(found) == 1, found
    assert "candidates[2]: no tenant that the policy matches may use board" in found[0]


def test_where_any_tenant_is_matched_one_that_may_use_it_is_enough(load_texts: Loader) -> None:
    assert lines(load(load_texts, fit("[turns-8, board]"))) == []


def test_a_tenant_that_may_use_no_candidate_is_pointed_out(load_texts: Loader) -> None:
    tenant = document("Tenant", "a", "namespaces: {names: [a]}\nprofiles: [slice-4]")
    policy = document(
        "GPUPolicy", "p", f"order: 1\nmatch: {{tenants: [chat, a]}}\n{fit('[turns-8, board]')}"
    )
    found = lines(load_texts(f"{COMPLETE}---\n{PROFILES}", tenant, policy))

    assert found == [
        (
            "c.yaml:6:27: warning: GPUPolicy/p: spec.match.tenants[1]: "
            "tenant a may not use any candidate: its pods are refused"
        )
    ]


def test_a_default_that_fits_no_candidate_is_pointed_out(load_texts: Loader) -> None:
    found = lines(load(load_texts, fit("[turns-8, turns-4]", "20Gi")))

    assert len(found) == 1, found
    assert "memory.default: fits no candidate, of which the largest has 19 GiB" in found[0]
    assert lines(load(load_texts, fit("[turns-8, turns-4]", "19Gi"))) == []
    assert lines(load(load_texts, fit("[turns-8, whole]", "500Gi"))) == []  # only nodes can tell


def test_a_limit_above_what_there_is_is_pointed_out(load_texts: Loader) -> None:
    found = lines(load(load_texts, "rewrite: {profile: mps-4}\nmemoryLimit: {value: 20Gi}"))

    assert len(found) == 1, found
    assert "memoryLimit.value: is more than there is: 19 GiB at most, which then is" in found[0]


def test_exclusive_gpus_for_a_tenant_without_a_guarantee_are_pointed_out(
    load_texts: Loader,
) -> None:
    quotas = {"a": "gpus: {ceiling: 2}", "b": "gpus: {guarantee: 1}"}
    tenants = [
        document("Tenant", name, f"namespaces: {{names: [{name}]}}\nquota: {{{quota}}}")
        for name, quota in quotas.items()
    ]
    policy = document(
        "GPUPolicy",
        "p",
        "order: 1\nmatch: {tenants: [a, b]}\nrewrite: {profile: whole}\nexclusive: true",
    )
    found = lines(load_texts(COMPLETE, *tenants, policy))

    assert found == [
        (
            "d.yaml:6:21: warning: GPUPolicy/p: spec.match.tenants[0]: "
            "tenant a is guaranteed nothing: its exclusive pods are refused"
        )
    ]
    assert lines(load_texts(COMPLETE, *tenants, policy.replace("exclusive: true", ""))) == []
