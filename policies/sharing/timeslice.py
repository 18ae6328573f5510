# SPDX-License-Identifier: Apache-2.0
"""TimeSlice: one of `replicas` turns on a GPU that NVIDIA's device plugin hands out N times."""

from policies.model.profile import Charge, Profile, SharingMode, Strength
from policies.sharing.placement import pinned, products_expression, shared_products
from policies.sharing.spec import ProfileError, ProfileSpec
from policies.vendors import Catalog
from policies.vendors.nvidia import REPLICAS_LABEL, SHARED, STRATEGY_LABEL

MODE = SharingMode.TIME_SLICE


def derive(spec: ProfileSpec, catalog: Catalog) -> Profile:
    """Pin nodes that slice by time into this many replicas. Raises ProfileError."""
    if spec.vendor != "nvidia":
        raise ProfileError("vendor", f"{spec.vendor} GPUs have no time slices")
    if spec.mig_profile is not None:
        raise ProfileError("mig", "a TimeSlice profile shares whole GPUs, not MIG instances")
    if spec.replicas is None:
        raise ProfileError("replicas", "say into how many slices the nodes' GPUs are divided")
    vendor = catalog.vendor(spec.vendor)
    labels = {STRATEGY_LABEL: "time-slicing", REPLICAS_LABEL: str(spec.replicas)}
    return Profile(
        name=spec.name,
        mode=MODE,
        vendor=vendor.name,
        resource=spec.resource or SHARED,
        charge=Charge(1, spec.replicas),
        placement=pinned(
            spec,
            vendor,
            labels,
            products_expression(vendor.product_label, shared_products(spec)),
        ),
        strength=Strength.COOPERATIVE if spec.limiter else Strength.NONE,
        products=spec.products,
        replicas=spec.replicas,
        allow_multiple=spec.allow_multiple,
        share_with=spec.share_with,
        limiter=spec.limiter,
        compute_percent=100 // spec.replicas,
        shipped=spec.shipped,
    )
