# SPDX-License-Identifier: Apache-2.0
"""MIG: one hardware instance of a GPU that the mixed strategy advertises by its profile."""

from policies.model.labels import Expression, Operator
from policies.model.profile import Charge, Profile, SharingMode, Strength
from policies.sharing.placement import pinned, products_expression, settled_mig
from policies.sharing.spec import ProfileError, ProfileSpec, demand_walls
from policies.vendors import Catalog, MigProduct, MigShape
from policies.vendors.nvidia import MIG_PREFIX
from policies.vendors.vendor import MIG_PROFILE

MODE = SharingMode.MIG


def derive(spec: ProfileSpec, catalog: Catalog) -> Profile:
    """Look the shape up for every product. Raises ProfileError if one does not have it."""
    if spec.vendor != "nvidia":
        raise ProfileError("vendor", f"{spec.vendor} GPUs have no MIG")
    if spec.replicas is not None:
        raise ProfileError("replicas", "a MIG profile is one instance; it is not divided further")
    demand_walls(spec)
    if spec.mig_profile is None:
        raise ProfileError("mig", "say which MIG profile, such as {profile: 1g.10gb}")
    _check_name(spec.mig_profile)
    pairs = _shapes(spec, spec.mig_profile, catalog)
    memories = [shape.memory_mib for _, shape in pairs]
    vendor = catalog.vendor(spec.vendor)
    suffix = pairs[0][1].resource_suffix
    return Profile(
        name=spec.name,
        mode=MODE,
        vendor=vendor.name,
        resource=spec.resource or f"{MIG_PREFIX}{suffix}",
        charge=_charge(spec, pairs),
        placement=pinned(
            spec,
            vendor,
            {},
            (
                *products_expression(vendor.product_label, _products(spec, pairs)),
                # The same resource name may be handed out several times over.
                Expression(
                    f"{MIG_PREFIX}{suffix}.sharing-strategy",
                    Operator.NOT_IN,
                    ("mps", "time-slicing"),
                ),
                settled_mig(),
            ),
        ),
        strength=Strength.HARDWARE,
        products=_products(spec, pairs),
        mig_profile=spec.mig_profile,
        memory_mib=min((m for m in memories if m is not None), default=None)
        if None not in memories
        else None,
        allow_multiple=spec.allow_multiple,
        compute_percent=min(100 * s.compute_slices // b.compute_slices for b, s in pairs),
        shipped=spec.shipped,
    )


def _check_name(profile: str) -> None:
    match = MIG_PROFILE.fullmatch(profile)
    if match is None:
        raise ProfileError("mig.profile", f"{profile} is no MIG profile name, such as 1g.10gb")
    if match["c"] is not None and match["c"] != match["g"]:
        raise ProfileError(
            "mig.profile",
            f"{profile} is a part of a MIG instance; device plugins advertise whole instances only",
        )


def _shapes(
    spec: ProfileSpec, profile: str, catalog: Catalog
) -> tuple[tuple[MigProduct, MigShape], ...]:
    """Return the boards meant and their shape: those of `products`, else all that have it."""
    if not spec.products:
        return _everywhere(profile, catalog)
    found = []
    for index, name in enumerate(spec.products):
        board = next((b for b in catalog.mig_products if name in b.products), None)
        if board is None:
            raise ProfileError(f"products[{index}]", f"{name} is not known to support MIG")
        shape = board.shape(profile)
        if shape is None:
            shapes = ", ".join(s.name for s in board.shapes)
            raise ProfileError("mig.profile", f"{name} has no {profile}; it has {shapes}")
        found.append((board, shape))
    return tuple(found)


def _everywhere(profile: str, catalog: Catalog) -> tuple[tuple[MigProduct, MigShape], ...]:
    found = [(b, s) for b in catalog.mig_products if (s := b.shape(profile)) is not None]
    if not found:
        known = sorted({s.name for b in catalog.mig_products for s in b.shapes})
        raise ProfileError(
            "mig.profile", f"no known GPU has {profile}; known are {', '.join(known)}"
        )
    return tuple(found)


def _products(spec: ProfileSpec, pairs: tuple[tuple[MigProduct, MigShape], ...]) -> tuple[str, ...]:
    return spec.products or tuple(name for board, _ in pairs for name in board.products)


def _charge(spec: ProfileSpec, pairs: tuple[tuple[MigProduct, MigShape], ...]) -> Charge:
    """Return memory slices over the GPU's memory slices; boards of one profile must agree."""
    charges = {Charge(shape.size, board.memory_slices) for board, shape in pairs}
    if len(charges) > 1:
        raise ProfileError(
            "products",
            f"{spec.mig_profile} is a different part of these GPUs; write one profile for each: "
            + ", ".join(f"{b.family} {s.size}/{b.memory_slices}" for b, s in pairs),
        )
    return charges.pop()
