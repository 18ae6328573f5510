# SPDX-License-Identifier: Apache-2.0
"""MPS: one of `replicas` shares of a GPU, each with its part of memory and threads.

The daemon of NVIDIA's device plugin limits every process to 1/N; whole GPUs only, never MIG
instances. Source: NVIDIA/k8s-device-plugin cmd/mps-control-daemon.
"""

from policies.model.profile import Charge, Profile, SharingMode, Strength
from policies.sharing.placement import pinned, products_expression, shared_products
from policies.sharing.spec import ProfileError, ProfileSpec
from policies.vendors import Catalog
from policies.vendors.nvidia import REPLICAS_LABEL, SHARED, STRATEGY_LABEL

MODE = SharingMode.MPS


def derive(spec: ProfileSpec, catalog: Catalog) -> Profile:
    """Pin nodes that share by MPS into this many replicas. Raises ProfileError."""
    if spec.vendor != "nvidia":
        raise ProfileError("vendor", f"{spec.vendor} GPUs have no MPS")
    if spec.mig_profile is not None:
        raise ProfileError("mig", "an MPS profile shares whole GPUs, not MIG instances")
    if spec.limiter is not None:
        raise ProfileError("limiter", "MPS limits its processes by itself")
    if spec.allow_multiple:
        raise ProfileError("allowMultiple", "the MPS daemon gives one share to a container")
    if spec.replicas is None:
        raise ProfileError("replicas", "say into how many shares the nodes' GPUs are divided")
    vendor = catalog.vendor(spec.vendor)
    labels = {STRATEGY_LABEL: "mps", REPLICAS_LABEL: str(spec.replicas)}
    products = products_expression(vendor.product_label, shared_products(spec))
    return Profile(
        name=spec.name,
        mode=MODE,
        vendor=vendor.name,
        resource=spec.resource or SHARED,
        charge=Charge(1, spec.replicas),
        placement=pinned(spec, vendor, labels, products),
        strength=Strength.PROCESS,
        products=spec.products,
        replicas=spec.replicas,
        share_with=spec.share_with,
        compute_percent=100 // spec.replicas,
        shipped=spec.shipped,
    )
