# SPDX-License-Identifier: Apache-2.0
"""The ready-made sharing profiles: the whole GPU, and one for each known MIG shape."""

from collections.abc import Iterator, Mapping

from policies.model.profile import Profile, SharingMode
from policies.sharing.modes import derive
from policies.sharing.spec import ProfileSpec
from policies.vendors import Catalog

WHOLE = "whole"


def shipped_profiles(catalog: Catalog) -> Mapping[str, Profile]:
    """Return the ready-made profiles by name: `whole`, `h100-1g.10gb`, `a30-1g.6gb.me`, ..."""
    return {spec.name: derive(spec, catalog) for spec in shipped_specs(catalog)}


def shipped_specs(catalog: Catalog) -> Iterator[ProfileSpec]:
    """Yield what their documents would say."""
    yield ProfileSpec(name=WHOLE, mode=SharingMode.EXCLUSIVE, shipped=True)
    for board in catalog.mig_products:
        for shape in board.shapes:
            if shape.is_alias:
                continue
            yield ProfileSpec(
                name=f"{board.family}-{shape.resource_suffix}",
                mode=SharingMode.MIG,
                products=board.products,
                mig_profile=shape.name,
                shipped=True,
            )
