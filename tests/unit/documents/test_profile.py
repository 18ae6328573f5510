# SPDX-License-Identifier: Apache-2.0
"""A SharingProfile document becomes the form that its mode derives, or says why no GPU gives it."""

import pytest

from policies.documents.shipped import shipped_profiles
from policies.model.profile import (
    Charge,
    Limiter,
    Profile,
    ShareWith,
    SharingMode,
    Strength,
    Toleration,
)
from policies.vendors import Catalog
from tests.unit.documents.loading import Loader, document, errors, served


def profile(load_texts: Loader, spec: str) -> Profile:
    return served(load_texts(document("SharingProfile", "mine", spec))).profiles["mine"]


def test_every_field_reaches_the_form(load_texts: Loader) -> None:
    spec = """
        description: A quarter.
        mode: TimeSlice
        vendor: nvidia
        replicas: 4
        products: [NVIDIA-L40S]
        resource: nvidia.com/gpu.quarter
        nodeSelector: {pool: shared}
        tolerations:
        - {key: example.com/pool, operator: Equal, value: shared, effect: NoSchedule}
        - {operator: Exists, effect: NoExecute, tolerationSeconds: 60}
        allowMultiple: true
        """
    found = profile(load_texts, spec)

    assert found.mode is SharingMode.TIME_SLICE
    assert (found.resource, found.replicas, found.charge) == (
        "nvidia.com/gpu.quarter",
        4,
        Charge(1, 4),
    )
    assert found.products == ("NVIDIA-L40S",)
    assert found.allow_multiple
    assert not found.shipped
    assert found.placement.node_selector["pool"] == "shared"
    assert Toleration("example.com/pool", "Equal", "shared", "NoSchedule") in (
        found.placement.tolerations
    )
    assert Toleration(operator="Exists", effect="NoExecute", toleration_seconds=60) in (
        found.placement.tolerations
    )


@pytest.mark.parametrize(
    ("spec", "strength", "share_with", "limiter"),
    [
        ("mode: MPS\nreplicas: 8", Strength.PROCESS, ShareWith.ANY, None),
        ("mode: MPS\nreplicas: 8\nshareWith: Cohort", Strength.PROCESS, ShareWith.COHORT, None),
        ("mode: TimeSlice\nreplicas: 8\nshareWith: Tenant", Strength.NONE, ShareWith.TENANT, None),
        (
            "mode: TimeSlice\nreplicas: 8\nlimiter: HAMiCore",
            Strength.COOPERATIVE,
            ShareWith.ANY,
            Limiter.HAMI_CORE,
        ),
    ],
)
def test_a_form_without_a_wall_says_who_shares_and_what_limits(
    load_texts: Loader,
    spec: str,
    strength: Strength,
    share_with: ShareWith,
    limiter: Limiter | None,
) -> None:
    found = profile(load_texts, spec)

    assert (found.replicas, found.charge) == (8, Charge(1, 8))
    assert (found.strength, found.share_with, found.limiter) == (strength, share_with, limiter)


@pytest.mark.parametrize(
    "mode", ["Exclusive", "MIG\nmig: {profile: 1g.10gb}\nproducts: [NVIDIA-H100-80GB-HBM3]"]
)
def test_anybody_may_sit_beside_a_form_with_a_wall(load_texts: Loader, mode: str) -> None:
    assert profile(load_texts, f"mode: {mode}\nshareWith: Any").share_with is ShareWith.ANY


def test_a_mig_profile_looks_its_shape_up(load_texts: Loader) -> None:
    spec = "mode: MIG\nmig: {profile: 3g.40gb}\nproducts: [NVIDIA-H100-80GB-HBM3]"
    found = profile(load_texts, spec)

    assert found.resource == "nvidia.com/mig-3g.40gb"
    assert found.charge == Charge(4, 8)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            "mode: MIG\nmig: {profile: 1g.10g}",
            "6:18: error: SharingProfile/mine: spec.mig.profile: 1g.10g is no MIG profile name",
        ),
        ("mode: MIG\nmig: {profile: 1g.10g}", 'did you mean "1g.10gb"?'),
        (
            "mode: MIG\nmig: {profile: 1g.5gb}\nproducts: [NVIDIA-H100-80GB-HBM3]",
            "6:18: error: SharingProfile/mine: spec.mig.profile: NVIDIA-H100-80GB-HBM3 has no 1g.5",
        ),
        (
            "mode: MIG\nmig: {profile: 1g.10gb}\nproducts: [NVIDIA-A30, NVIDIA-H100-80GB-HBM]",
            "6:18: error: SharingProfile/mine: spec.mig.profile: NVIDIA-A30 has no 1g.10gb",
        ),
        (
            "mode: MIG\nmig: {profile: 1g.10gb}\nproducts: [NVIDIA-H100-80GB-HBM]",
            (
                "7:14: error: SharingProfile/mine: spec.products[0]: NVIDIA-H100-80GB-HBM is not "
                'known to support MIG; did you mean "NVIDIA-H100-80GB-HBM3"?'
            ),
        ),
        ("mode: MIG", "5:3: error: SharingProfile/mine: spec.mig: say which MIG profile"),
        ("mode: MIG\nmig: {}", "6:8: error: SharingProfile/mine: spec.mig.profile: is missing"),
        ("mode: TimeSlice", "5:3: error: SharingProfile/mine: spec.replicas: say into how many"),
        ("mode: TimeSlice\nreplicas: 1", "spec.replicas: must be at least 2, is 1"),
        ("mode: TimeSlice\nreplicas: 4.5", "spec.replicas: must be a whole number, is 4.5"),
        ("mode: Exclusive\nreplicas: 4", "6:13: error: SharingProfile/mine: spec.replicas: an Ex"),
        ("mode: TimeSlice\nreplicas: 4\nmig: {profile: 1g.10gb}", "spec.mig: a TimeSlice profile"),
        ("mode: MPS", "5:3: error: SharingProfile/mine: spec.replicas: say into how many shares"),
        ("mode: MPS\nreplicas: 1", "spec.replicas: must be at least 2, is 1"),
        ("mode: MPS\nreplicas: 4\nmig: {profile: 1g.10gb}", "spec.mig: an MPS profile shares who"),
        ("mode: MPS\nreplicas: 4\nlimiter: HAMiCore", "spec.limiter: MPS limits its processes"),
        ("mode: MPS\nreplicas: 4\nallowMultiple: true", "spec.allowMultiple: the MPS daemon gives"),
        (
            "mode: Exclusive\nshareWith: Tenant",
            (
                "6:14: error: SharingProfile/mine: spec.shareWith: mode Exclusive has a wall "
                "already; only TimeSlice and MPS have none"
            ),
        ),
        (
            "mode: MIG\nmig: {profile: 1g.10gb}\nshareWith: Cohort",
            "7:14: error: SharingProfile/mine: spec.shareWith: mode MIG has a wall already",
        ),
        (
            "mode: MIG\nmig: {profile: 1g.10gb}\nlimiter: HAMiCore",
            "7:12: error: SharingProfile/mine: spec.limiter: mode MIG limits memory by itself",
        ),
        ("mode: Exclusive\nlimiter: HAMiCore", "spec.limiter: mode Exclusive limits memory by"),
        ("mode: TimeSlice\nreplicas: 4\nlimiter: HAMi", 'must be "HAMiCore", is "HAMi"'),
        ("mode: TimeSlice\nreplicas: 4\nshareWith: tenant", 'is "tenant"; did you mean "Tenant"?'),
        ("mode: TimeSlice\nvendor: amd\nreplicas: 4", "spec.vendor: amd GPUs have no time slices"),
        ("mode: Exclusive\nvendor: intel", "spec.vendor: must be one of nvidia, amd; is"),
        ("replicas: 4", "5:3: error: SharingProfile/mine: spec.mode: is missing"),
        (
            "mode: Exclusive\nresource: gpu",
            'spec.resource: "gpu" is no extended resource; write domain/name',
        ),
        ("mode: Exclusive\nresource: example.com/fpga", "is no known GPU resource: pods that ask"),
        ("mode: Exclusive\nnodeSelector: {a b: c}", 'spec.nodeSelector["a b"]: "a b" is no label'),
        ("mode: Exclusive\nnodeSelector: {a: 1}", 'must be text, is 1; put it in quotes: "1"'),
        ("mode: Exclusive\nproducts: [NVIDIA H100]", "spec.products[0]: must be letters, digits"),
        (
            "mode: Exclusive\ntolerations: [{key: a, operator: Exists, value: b}]",
            "spec.tolerations[0].value: operator Exists takes no value",
        ),
        ("mode: Exclusive\ntolerations: [{value: b}]", "without a key needs operator Exists"),
        ("mode: Exclusive\ntolerations: [{key: a b}]", 'spec.tolerations[0].key: "a b" is no tain'),
        (
            "mode: Exclusive\ntolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 5}]",
            "spec.tolerations[0].tolerationSeconds: only effect NoExecute takes",
        ),
    ],
)
def test_a_profile_that_no_gpu_gives_is_refused(load_texts: Loader, spec: str, error: str) -> None:
    found = errors(load_texts(document("SharingProfile", "mine", spec)))

    assert len(found) == 1, found
    assert error in found[0]


def test_every_known_mig_shape_and_the_whole_gpu_ship(catalog: Catalog) -> None:
    shipped = shipped_profiles(catalog)
    shapes = sum(not shape.is_alias for board in catalog.mig_products for shape in board.shapes)

    assert len(shipped) == 1 + shapes
    assert shipped["whole"].mode is SharingMode.EXCLUSIVE
    assert shipped["whole"].resource == "nvidia.com/gpu"
    assert shipped["h100-1g.10gb"].mig_profile == "1g.10gb"
    assert "NVIDIA-H100-80GB-HBM3" in shipped["h100-1g.10gb"].products
    assert shipped["a30-1g.6gb.me"].mig_profile == "1g.6gb+me"
    assert all(profile.shipped for profile in shipped.values())


def test_every_shipped_name_could_be_written_in_a_policy(
    load_texts: Loader, catalog: Catalog
) -> None:
    policies = [
        document("GPUPolicy", f"p{n}", f"order: {n}\nmatch: {{namespaces: [n{n}]}}\n"
                 f"rewrite: {{profile: {name}}}")
        for n, name in enumerate(shipped_profiles(catalog))
    ]  # fmt: skip

    assert len(served(load_texts("---\n".join(policies))).policies) == len(policies)
