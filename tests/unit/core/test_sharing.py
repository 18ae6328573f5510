# SPDX-License-Identifier: Apache-2.0
"""What each sharing mode makes of a profile document."""

import re
from typing import Any

import pytest

from policies.model.labels import Expression, Operator
from policies.model.profile import Charge, SharingMode, Strength, Toleration
from policies.sharing.modes import MODES, Mode, derive
from policies.sharing.spec import ProfileError, ProfileSpec
from tests.support.builders import GPU, MIG, SHARED, catalog

H100 = "NVIDIA-H100-80GB-HBM3"

SPECS: dict[SharingMode, dict[str, Any]] = {
    SharingMode.EXCLUSIVE: {},
    SharingMode.MIG: {"mig_profile": "1g.10gb", "products": (H100,)},
    SharingMode.MPS: {"replicas": 8, "products": (H100,)},
    SharingMode.TIME_SLICE: {"replicas": 4, "products": (H100,)},
}
"""The least that a document of each mode must say."""


def _spec(mode: SharingMode, **changes: Any) -> ProfileSpec:
    return ProfileSpec("profile", mode, **{**SPECS[mode], **changes})


ALL = pytest.mark.parametrize("mode", MODES, ids=lambda m: str(m.MODE))


def test_there_is_one_module_for_each_mode() -> None:
    assert sorted(mode.MODE for mode in MODES) == sorted(SharingMode)
    assert SPECS.keys() == set(SharingMode)


@ALL
def test_a_mode_derives_resource_charge_strength_and_placement(mode: Mode) -> None:
    profile = derive(_spec(mode.MODE), catalog())

    assert profile.mode is mode.MODE
    assert catalog().classify(profile.resource) is not None
    assert 0 < profile.charge.milli(1) <= 1000
    assert profile.placement.tolerations[0] == Toleration(GPU, "Exists", effect="NoSchedule")
    assert profile.placement.node_selector or profile.placement.expressions


@ALL
def test_a_documents_own_placement_comes_on_top(mode: Mode) -> None:
    own = Toleration("batch", "Exists")
    spec = _spec(mode.MODE, node_selector={"pool": "batch"}, tolerations=(own,))
    profile = derive(spec, catalog())

    assert profile.placement.node_selector["pool"] == "batch"
    assert profile.placement.tolerations[-1] == own


@ALL
def test_a_document_may_name_the_resource(mode: Mode) -> None:
    assert derive(_spec(mode.MODE, resource="nvidia.com/x"), catalog()).resource == "nvidia.com/x"


@ALL
def test_a_mode_pins_the_models_that_the_document_names(mode: Mode) -> None:
    profile = derive(_spec(mode.MODE, products=(H100,)), catalog())
    products = [e for e in profile.placement.expressions if e.key == "nvidia.com/gpu.product"]

    assert len(products) == 1
    assert products[0].operator is Operator.IN
    assert H100 in products[0].values


def test_whole_gpus_are_pinned_to_nodes_that_neither_share_nor_cut() -> None:
    profile = derive(_spec(SharingMode.EXCLUSIVE), catalog())

    assert (profile.resource, profile.charge) == (GPU, Charge(1, 1))
    assert (profile.strength, profile.allow_multiple) == (Strength.HARDWARE, True)
    assert profile.placement.node_selector == {"nvidia.com/gpu.sharing-strategy": "none"}
    assert (
        Expression("nvidia.com/gpu.slices.gi", Operator.DOES_NOT_EXIST)
        in profile.placement.expressions
    )


def test_whole_gpus_of_another_vendor_need_none_of_nvidias_labels() -> None:
    profile = derive(_spec(SharingMode.EXCLUSIVE, vendor="amd", products=("MI300X",)), catalog())

    assert profile.resource == "amd.com/gpu"
    assert profile.placement.node_selector == {}
    assert profile.placement.expressions == (
        Expression("amd.com/gpu.product-name", Operator.IN, ("MI300X",)),
    )
    assert profile.placement.tolerations == (
        Toleration("amd.com/gpu", "Exists", effect="NoSchedule"),
    )


def test_a_time_slice_costs_its_part_and_holds_no_memory() -> None:
    profile = derive(_spec(SharingMode.TIME_SLICE, replicas=3), catalog())

    assert (profile.resource, profile.charge, profile.replicas) == (SHARED, Charge(1, 3), 3)
    assert [profile.charge.milli(units) for units in (1, 2, 3)] == [334, 667, 1000]
    assert (profile.strength, profile.memory_mib, profile.allow_multiple) == (
        Strength.NONE,
        None,
        False,
    )
    assert profile.placement.node_selector == {
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
        "nvidia.com/gpu.replicas": "3",
    }


def test_a_time_slice_that_keeps_the_devices_name_is_pinned_to_the_label_of_shared_nodes() -> None:
    profile = derive(_spec(SharingMode.TIME_SLICE, resource=GPU), catalog())

    assert profile.placement.expressions == (
        Expression("nvidia.com/gpu.product", Operator.IN, (f"{H100}-SHARED",)),
    )


@pytest.mark.parametrize(
    ("shape", "milli", "mib"),
    [
        ("1g.10gb", 125, 9984),
        ("1g.20gb", 250, 20090),
        ("2g.20gb", 250, 20090),
        ("3g.40gb", 500, 40448),
        ("4g.40gb", 500, 40448),
        ("7g.80gb", 1000, 81152),
    ],
)
def test_a_mig_instance_costs_its_memory_slices(shape: str, milli: int, mib: int) -> None:
    profile = derive(_spec(SharingMode.MIG, mig_profile=shape), catalog())

    assert profile.charge.milli(1) == milli
    assert (profile.resource, profile.memory_mib) == (f"nvidia.com/mig-{shape}", mib)
    assert profile.strength is Strength.HARDWARE


def test_a_mig_instance_with_an_attribute_is_spelt_as_the_device_plugin_does() -> None:
    profile = derive(_spec(SharingMode.MIG, mig_profile="1g.10gb+me"), catalog())

    assert profile.resource == f"{MIG}.me"


def test_a_mig_instance_is_kept_off_nodes_that_hand_it_out_several_times() -> None:
    profile = derive(_spec(SharingMode.MIG), catalog())

    assert (
        Expression(f"{MIG}.sharing-strategy", Operator.NOT_IN, ("mps", "time-slicing"))
        in profile.placement.expressions
    )


def test_a_mig_profile_without_products_means_all_boards_that_cut_it_alike() -> None:
    profile = derive(_spec(SharingMode.MIG, mig_profile="3g.47gb", products=()), catalog())

    assert profile.products
    assert all("H100" in product for product in profile.products)


@pytest.mark.parametrize(
    ("mode", "changes", "field", "message"),
    [
        (SharingMode.EXCLUSIVE, {"replicas": 2}, "replicas", "an Exclusive profile has none"),
        (SharingMode.EXCLUSIVE, {"mig_profile": "1g.10gb"}, "mig", "an Exclusive profile has none"),
        (SharingMode.TIME_SLICE, {"replicas": None}, "replicas", "into how many slices"),
        (SharingMode.TIME_SLICE, {"mig_profile": "1g.10gb"}, "mig", "shares whole GPUs"),
        (SharingMode.TIME_SLICE, {"vendor": "amd"}, "vendor", "amd GPUs have no time slices"),
        (SharingMode.MIG, {"mig_profile": None}, "mig", "say which MIG profile"),
        (SharingMode.MIG, {"replicas": 2}, "replicas", "it is not divided further"),
        (SharingMode.MIG, {"vendor": "amd"}, "vendor", "amd GPUs have no MIG"),
        (
            SharingMode.MIG,
            {"mig_profile": "9g.1gb"},
            "mig.profile",
            f"{H100} has no 9g.1gb; it has",
        ),
        (
            SharingMode.MIG,
            {"products": ("NVIDIA-L40S",)},
            "products[0]",
            "not known to support MIG",
        ),
        (
            SharingMode.MIG,
            {"products": (), "mig_profile": "9g.1gb"},
            "mig.profile",
            "no known GPU has 9g.1gb",
        ),
        (
            SharingMode.MIG,
            {"products": (H100, "NVIDIA-A100-SXM4-40GB")},
            "products",
            "is a different part of these GPUs",
        ),
    ],
)
def test_a_profile_that_no_gpu_can_give_names_the_field_at_fault(
    mode: SharingMode, changes: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(ProfileError, match=re.escape(message)) as caught:
        derive(_spec(mode, **changes), catalog())

    assert caught.value.field_path == field


@pytest.mark.parametrize("ending", ["-SHARED", "-MIG-1g.10gb", "-MIG-1g.10gb-SHARED"])
@ALL
def test_a_model_may_be_named_as_a_sharing_nodes_label_does(mode: Mode, ending: str) -> None:
    assert derive(_spec(mode.MODE, products=(H100 + ending, H100)), catalog()) == derive(
        _spec(mode.MODE, products=(H100,)), catalog()
    )
