# SPDX-License-Identifier: Apache-2.0
"""All that is known before any document is read: GPU names, boards, MIG shapes, workloads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from policies.model.workload import Workloads
from policies.vendors import amd, nvidia
from policies.vendors.vendor import Form, GpuName, MigProduct, MigShape, Vendor
from policies.workloads.reading import shipped_workloads

_VENDORS: tuple[Vendor, ...] = (nvidia.VENDOR, amd.VENDOR)
_CACHE_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Catalog:
    """Vendors, boards that MIG can cut, and the words that tell GPU names.

    `gpu_prefixes` are lower-case beginnings of resource names; `device_class_words` occur in the
    names of device classes that give GPUs. `board_mib` is the memory of whole boards by product.
    `workloads` are the kinds whose controllers make pods.
    """

    vendors: tuple[Vendor, ...]
    gpu_prefixes: tuple[str, ...]
    mig_products: tuple[MigProduct, ...]
    device_class_words: tuple[str, ...]
    board_mib: Mapping[str, int]
    workloads: Workloads
    _names: dict[str, GpuName | None] = field(default_factory=dict, compare=False, repr=False)

    def classify(self, resource: str) -> GpuName | None:
        """Tell what a resource name stands for; None if it has nothing to do with GPUs."""
        try:
            return self._names[resource]
        except KeyError:
            pass
        found = self._classify(resource)
        # Names come from users: the memo must not grow with what they think up.
        if len(self._names) < _CACHE_LIMIT:
            self._names[resource] = found
        return found

    def _classify(self, resource: str) -> GpuName | None:
        for vendor in self.vendors:
            if (found := vendor.classify(resource)) is not None:
                return found
        if resource.lower().startswith(self.gpu_prefixes):
            return GpuName(resource, Form.UNKNOWN)
        return None

    def vendor(self, name: str) -> Vendor:
        """Return the vendor of this name; KeyError if there is none."""
        for vendor in self.vendors:
            if vendor.name == name:
                return vendor
        raise KeyError(name)


def build_catalog() -> Catalog:
    """Read the shipped data; it is part of the package, so a fault in it is a bug."""
    names = _data("gpu_names.json")
    boards = _data("nvidia.json")
    return Catalog(
        vendors=_VENDORS,
        gpu_prefixes=tuple(names["prefixes"]),
        mig_products=tuple(_product(raw, boards["geometries"]) for raw in boards["migProducts"]),
        device_class_words=tuple(_data("device_classes.json")["words"]),
        board_mib=boards["boards"]["mib"],
        workloads=shipped_workloads(),
    )


def _data(name: str) -> dict[str, Any]:
    text = resources.files("policies.vendors").joinpath("data", name).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _product(raw: Mapping[str, Any], geometries: Mapping[str, Any]) -> MigProduct:
    geometry = geometries[raw["geometry"]]
    return MigProduct(
        family=raw["family"],
        products=tuple(raw["products"]),
        compute_slices=geometry["computeSlices"],
        memory_slices=geometry["memorySlices"],
        shapes=tuple(
            _shape(name, profile, geometry["kinds"][profile["kind"]])
            for name, profile in raw["profiles"].items()
        ),
        mark=raw["mark"],
    )


def _shape(name: str, profile: Mapping[str, Any], kind: Mapping[str, Any]) -> MigShape:
    return MigShape(
        name=name,
        compute_slices=kind["compute"],
        size=kind["size"],
        starts=tuple(kind["starts"]),
        max_per_gpu=kind["max"],
        gi_profile_id=kind.get("id"),
        memory_mib=profile.get("mib"),
        is_alias=profile.get("alias", False),
    )
