# SPDX-License-Identifier: Apache-2.0
"""Node requirements that several sharing modes have in common."""

from collections.abc import Mapping

from policies.model.labels import Expression, Operator
from policies.model.profile import Placement, Toleration
from policies.sharing.spec import ProfileSpec
from policies.vendors import Vendor
from policies.vendors.nvidia import MIG_STATE_LABEL, WHOLE


def pinned(
    spec: ProfileSpec,
    vendor: Vendor,
    labels: Mapping[str, str],
    expressions: tuple[Expression, ...],
) -> Placement:
    """Join what the mode needs with what the document adds; the document wins on a label."""
    taint = Toleration(key=vendor.taint_key, operator="Exists", effect="NoSchedule")
    return Placement(
        node_selector={**labels, **spec.node_selector},
        expressions=expressions,
        tolerations=(taint, *(t for t in spec.tolerations if t != taint)),
    )


def products_expression(label: str, products: tuple[str, ...]) -> tuple[Expression, ...]:
    """Require one of the products; nothing is required where the document names none."""
    return (Expression(label, Operator.IN, products),) if products else ()


def shared_products(spec: ProfileSpec) -> tuple[str, ...]:
    """Return the product labels that sharing nodes carry: `-SHARED` is added unless renamed."""
    if spec.resource == WHOLE:
        return tuple(f"{product}-SHARED" for product in spec.products)
    return tuple(form for product in spec.products for form in (product, f"{product}-SHARED"))


def settled_mig() -> Expression:
    """Keep off a node that is being cut: what it advertises is about to change."""
    return Expression(MIG_STATE_LABEL, Operator.NOT_IN, ("failed", "pending", "rebooting"))
