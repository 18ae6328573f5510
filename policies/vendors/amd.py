# SPDX-License-Identifier: Apache-2.0
"""AMD: whole devices of its device plugin; its partitions are to come."""

from policies.vendors.vendor import Form, GpuName, Vendor

WHOLE = "amd.com/gpu"


def _classify(name: str) -> GpuName | None:
    return GpuName(name, Form.WHOLE, "amd") if name == WHOLE else None


VENDOR = Vendor(
    name="amd",
    whole=WHOLE,
    taint_key="amd.com/gpu",
    product_label="amd.com/gpu.product-name",
    classify=_classify,
)
