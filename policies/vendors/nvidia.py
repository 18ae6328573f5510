# SPDX-License-Identifier: Apache-2.0
"""NVIDIA: resource names of its device plugin and labels of GPU feature discovery."""

import re

from policies.vendors.vendor import MIG_PROFILE, Form, GpuName, Vendor

WHOLE = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
MIG_PREFIX = "nvidia.com/mig-"

PRODUCT_LABEL = "nvidia.com/gpu.product"
STRATEGY_LABEL = "nvidia.com/gpu.sharing-strategy"
REPLICAS_LABEL = "nvidia.com/gpu.replicas"
MIG_STATE_LABEL = "nvidia.com/mig.config.state"
SINGLE_STRATEGY_LABEL = "nvidia.com/gpu.slices.gi"
"""Only written where MIG instances are handed out under the whole GPU's name."""


SHARED_ENDING = "-SHARED"
"""End of the product label where shares are handed out under the whole GPU's name."""

_SHARING_ENDINGS = re.compile(r"(?:-SHARED|-MIG-[0-9a-z.+-]+)+$")
"""What GPU feature discovery adds to a model's name where its GPUs are shared or cut."""


def model_of(product: str) -> str:
    """Return a product label's model, as the label of a node that does not share says it."""
    return _SHARING_ENDINGS.sub("", product)


_CUT = re.compile(r"-MIG-([0-9][0-9a-z.+-]*)(?:-SHARED)?$", re.ASCII)


def mig_profile_of(product: str) -> str | None:
    """Return the MIG profile that a product label of the single strategy names, None if none."""
    match = _CUT.search(product)
    return _profile_of(match[1]) if match else None


def _classify(name: str) -> GpuName | None:
    if name == WHOLE:
        return GpuName(name, Form.WHOLE, "nvidia")
    if name == SHARED:
        return GpuName(name, Form.SHARED, "nvidia")
    if not name.startswith(MIG_PREFIX):
        return None
    suffix = name.removeprefix(MIG_PREFIX)
    shared = suffix.endswith(".shared")
    profile = _profile_of(suffix.removesuffix(".shared"))
    if MIG_PROFILE.fullmatch(profile) is None:
        return None
    return GpuName(name, Form.MIG_SHARED if shared else Form.MIG, "nvidia", profile)


def _profile_of(suffix: str) -> str:
    """Undo the device plugin's spelling of attributes: `1g.10gb.me` is profile `1g.10gb+me`."""
    base, marker, attributes = suffix.partition("gb.")
    return f"{base}gb+{attributes}" if marker else suffix


VENDOR = Vendor(
    name="nvidia",
    whole=WHOLE,
    taint_key="nvidia.com/gpu",
    product_label=PRODUCT_LABEL,
    classify=_classify,
)
