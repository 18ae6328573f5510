# SPDX-License-Identifier: Apache-2.0
"""What a vendor's device plugin calls its GPUs and how its nodes are labelled."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Form(StrEnum):
    """What a resource name of a known vendor stands for."""

    WHOLE = "Whole"
    SHARED = "Shared"
    MIG = "MIG"
    MIG_SHARED = "MIGShared"
    UNKNOWN = "Unknown"
    """GPU-like, but of no form that Sluice can judge."""


@dataclass(frozen=True, slots=True)
class GpuName:
    """A GPU-like resource name, told apart. `mig_profile` is as NVIDIA writes it (`1g.10gb+me`)."""

    resource: str
    form: Form
    vendor: str | None = None
    mig_profile: str | None = None


@dataclass(frozen=True, slots=True)
class Vendor:
    """One GPU maker: the name of its whole devices, its node taint and its product label."""

    name: str
    whole: str
    taint_key: str
    product_label: str
    classify: Callable[[str], GpuName | None]
    """The form of a resource name, or None if the name is not this vendor's."""


@dataclass(frozen=True, slots=True)
class MigShape:
    """A MIG profile on one product: `size` memory slices at one of `starts`.

    `memory_mib` is what a process can use, or None where no figure is known. An alias is another
    spelling, which some drivers use.
    """

    name: str
    compute_slices: int
    size: int
    starts: tuple[int, ...]
    max_per_gpu: int
    gi_profile_id: int | None
    memory_mib: int | None
    is_alias: bool = False

    @property
    def resource_suffix(self) -> str:
        """Return the profile as resource names spell it (`1g.10gb.me`)."""
        return self.name.replace("+", ".")


@dataclass(frozen=True, slots=True)
class MigProduct:
    """A family of boards that cut alike. `products` are values of nvidia.com/gpu.product.

    `mark` tells how sure the figures are: V seen, D documented, I inferred.
    """

    family: str
    products: tuple[str, ...]
    compute_slices: int
    memory_slices: int
    shapes: tuple[MigShape, ...]
    mark: str

    def shape(self, profile: str) -> MigShape | None:
        """Return the shape of this name, or None if these boards do not have it."""
        return next((shape for shape in self.shapes if shape.name == profile), None)


MIG_PROFILE = re.compile(
    r"(?:(?P<c>[1-9])c\.)?(?P<g>[1-9])g\.(?P<gb>[1-9][0-9]{0,3})gb"
    r"(?P<attributes>[+-](?:me\.all|me|gfx)(?:,(?:me\.all|me|gfx))*)?"
)
"""Grammar of MIG profile names. Source: NVIDIA/go-nvlib pkg/nvlib/device/mig_profile.go."""
