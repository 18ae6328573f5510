# SPDX-License-Identifier: Apache-2.0
"""Exclusive: whole GPUs on nodes that share with nobody."""

from policies.model.labels import Expression, Operator
from policies.model.profile import Charge, Placement, Profile, SharingMode, Strength
from policies.sharing.placement import pinned, products_expression, settled_mig
from policies.sharing.spec import ProfileError, ProfileSpec, demand_walls
from policies.vendors import Catalog
from policies.vendors.nvidia import SINGLE_STRATEGY_LABEL, STRATEGY_LABEL

MODE = SharingMode.EXCLUSIVE


def derive(spec: ProfileSpec, catalog: Catalog) -> Profile:
    """Pin nodes whose GPUs are neither shared nor cut. Raises ProfileError."""
    for field, value in (("replicas", spec.replicas), ("mig", spec.mig_profile)):
        if value is not None:
            raise ProfileError(field, "an Exclusive profile has none: it is the whole GPU")
    demand_walls(spec)
    vendor = catalog.vendor(spec.vendor)
    return Profile(
        name=spec.name,
        mode=MODE,
        vendor=vendor.name,
        resource=spec.resource or vendor.whole,
        charge=Charge(1, 1),
        placement=_placement(spec, catalog),
        strength=Strength.HARDWARE,
        products=spec.products,
        allow_multiple=True,
        shipped=spec.shipped,
    )


def _placement(spec: ProfileSpec, catalog: Catalog) -> Placement:
    vendor = catalog.vendor(spec.vendor)
    products = products_expression(vendor.product_label, spec.products)
    if spec.vendor != "nvidia":
        return pinned(spec, vendor, {}, products)
    # One resource name may mean several things: a time-sliced node that does not rename, or a
    # MIG node of the single strategy, offers nvidia.com/gpu too.
    return pinned(
        spec,
        vendor,
        {STRATEGY_LABEL: "none"},
        (*products, Expression(SINGLE_STRATEGY_LABEL, Operator.DOES_NOT_EXIST), settled_mig()),
    )
