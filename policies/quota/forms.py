# SPDX-License-Identifier: Apache-2.0
"""Which form of a GPU a resource name of a container stands for, where one name has several sizes.

A claim is believed as far as the pod is pinned to the claimed form's nodes; what a node's labels
say is physics and wins. Sums and prices must not be here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from policies.cluster.constraints import Constraints
from policies.model.policyset import PolicySet
from policies.model.profile import Charge, Profile, SharingMode
from policies.quota.pods import Shape
from policies.rewrite.offers import is_pinned_to
from policies.sharing.modes import derive
from policies.sharing.spec import ProfileError, ProfileSpec
from policies.vendors import Catalog, Form, GpuName
from policies.vendors.nvidia import (
    REPLICAS_LABEL,
    SHARED_ENDING,
    SINGLE_STRATEGY_LABEL,
    STRATEGY_LABEL,
    mig_profile_of,
)

_SHARING: Final = ("time-slicing", "mps")
_MOST_REPLICAS: Final = 100_000


def form_of(
    resource: str, claimed: str, shape: Shape, policies: PolicySet, labels: Mapping[str, str] | None
) -> Profile | None:
    """Return the form that a container of the shape has by a name, None where it cannot be told.

    `claimed` is the profile that the container's claim names; `labels` are those of its node.
    """
    giving = [p for p in policies.profiles.values() if p.resource == resource]
    named = [p for p in giving if p.name == claimed]
    named += [p for p in giving if p.name in shape.profiles and p.name != claimed]
    if labels is not None:
        stated = next((p for p in named if is_pinned_to(labels, p)), None)
        told = stated or _by_labels(resource, labels, policies.catalog)
        if told is not None:
            return told
        giving = [p for p in giving if is_pinned_to(labels, p)] or giving
    carried = [p for p in (*named, *giving) if is_carried(p, shape.constraints)]
    if named and named[0] in carried:
        return named[0]
    return _only(carried) or _by_name(resource, policies.catalog)


def is_carried(profile: Profile, constraints: Constraints) -> bool:
    """Tell whether a pod is pinned to the profile's nodes. One that matches none is to all."""
    placement, selector = profile.placement, dict(constraints.node_selector)
    if any(selector.get(key) != value for key, value in placement.node_selector.items()):
        return False
    if not placement.expressions:
        return True
    return constraints.terms is not None and all(
        expression in term.expressions
        for term in constraints.terms
        for expression in placement.expressions
    )


def _only(profiles: Iterable[Profile]) -> Profile | None:
    """Return any of these if they cost the same, else none."""
    found = list(profiles)
    return found[0] if len({profile.charge for profile in found}) == 1 else None


def _by_name(resource: str, catalog: Catalog) -> Profile | None:
    """Return the form of a name that means the same on all nodes, or nothing cheaper on any."""
    gpu = catalog.classify(resource)
    if gpu is None or gpu.vendor is None:
        return None
    if gpu.form is Form.WHOLE:
        return _derived(ProfileSpec(resource, SharingMode.EXCLUSIVE, gpu.vendor), catalog)
    return _mig(gpu, (), catalog) if gpu.form is Form.MIG else None


def _by_labels(resource: str, labels: Mapping[str, str], catalog: Catalog) -> Profile | None:
    """Return the form that the device plugin's labels on a node say a name has there."""
    gpu = catalog.classify(resource)
    if gpu is None or gpu.vendor is None:
        return None
    product = labels.get(catalog.vendor(gpu.vendor).product_label)
    products = (product,) if product else ()
    if gpu.vendor != "nvidia":
        spec = ProfileSpec(resource, SharingMode.EXCLUSIVE, gpu.vendor, products=products)
        return _derived(spec, catalog) if gpu.form is Form.WHOLE else None
    match gpu.form:
        case Form.MIG:
            return _mig(gpu, products, catalog)
        case Form.MIG_SHARED:
            base = resource.removesuffix(".shared")
            return _divided(_mig(gpu, products, catalog), labels.get(f"{base}.replicas"))
        case Form.WHOLE if SINGLE_STRATEGY_LABEL in labels:
            cut = replace(gpu, mig_profile=mig_profile_of(product or ""))
            whole = _mig(cut, products, catalog)
            is_shared = labels.get(STRATEGY_LABEL) in _SHARING
            return _divided(whole, labels.get(REPLICAS_LABEL)) if is_shared else whole
        case Form.WHOLE | Form.SHARED if _is_shared(gpu, product, labels):
            spec = ProfileSpec(resource, SharingMode.EXCLUSIVE, products=products)
            return _divided(_derived(spec, catalog), labels.get(REPLICAS_LABEL))
        case Form.WHOLE:
            spec = ProfileSpec(resource, SharingMode.EXCLUSIVE, products=products)
            return _derived(spec, catalog)
    return None


def _is_shared(gpu: GpuName, product: str | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a name stands for shares of a GPU on a node.

    Where shares have a name of their own, only pods of before the change hold whole devices.
    """
    is_divided = labels.get(STRATEGY_LABEL) in _SHARING
    return is_divided and (gpu.form is Form.SHARED or (product or "").endswith(SHARED_ENDING))


def _mig(gpu: GpuName, products: tuple[str, ...], catalog: Catalog) -> Profile | None:
    """Return the instance; without a product only if it is the same part of all boards."""
    spec = ProfileSpec(
        gpu.resource, SharingMode.MIG, products=products, mig_profile=gpu.mig_profile
    )
    return _derived(spec, catalog)


def _divided(profile: Profile | None, replicas: str | None) -> Profile | None:
    """Return one of so many equal parts of a form; None where their number is not known."""
    if profile is None or replicas is None or not (replicas.isascii() and replicas.isdecimal()):
        return None
    count = int(replicas[:9])
    if not 0 < count <= _MOST_REPLICAS:
        return None
    part = Charge(profile.charge.numerator, profile.charge.denominator * count)
    memory = None if profile.memory_mib is None else profile.memory_mib // count
    return replace(profile, charge=part, memory_mib=memory, replicas=count)


def _derived(spec: ProfileSpec, catalog: Catalog) -> Profile | None:
    try:
        return derive(spec, catalog)
    except ProfileError:
        return None
