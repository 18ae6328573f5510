# SPDX-License-Identifier: Apache-2.0
"""GPU makers: one module each, listed in `policies.vendors.catalog`; figures are in `data/`."""

from policies.vendors.catalog import Catalog, build_catalog
from policies.vendors.vendor import Form, GpuName, MigProduct, MigShape, Vendor

__all__ = ["Catalog", "Form", "GpuName", "MigProduct", "MigShape", "Vendor", "build_catalog"]
