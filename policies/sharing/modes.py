# SPDX-License-Identifier: Apache-2.0
"""The sharing modes that there are, in one explicit tuple."""

from dataclasses import replace
from typing import Protocol

from policies.model.profile import Profile, SharingMode
from policies.sharing import exclusive, mig, mps, timeslice
from policies.sharing.spec import ProfileSpec
from policies.vendors import Catalog
from policies.vendors.nvidia import model_of


class Mode(Protocol):
    """One way to share: what it is called and how a profile of it is derived."""

    MODE: SharingMode

    def derive(self, spec: ProfileSpec, catalog: Catalog) -> Profile:
        """Fill in resource, placement, charge, strength. Raises ProfileError."""
        ...


MODES: tuple[Mode, ...] = (exclusive, mig, mps, timeslice)


def derive(spec: ProfileSpec, catalog: Catalog) -> Profile:
    """Compile a profile by its mode. Raises ProfileError with the field at fault."""
    plain = tuple(dict.fromkeys(map(model_of, spec.products)))
    mode = next(mode for mode in MODES if spec.mode is mode.MODE)
    return mode.derive(replace(spec, products=plain), catalog)
