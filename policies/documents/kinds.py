# SPDX-License-Identifier: Apache-2.0
"""The kinds of documents, and what is designed but not supported yet.

A field that did nothing would be worse than one that is refused, so what comes later is refused
by name, apart from what is unknown.
"""

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """A kind that can be loaded; its schema is `schema/<kind in lower case>.json`."""

    SETTINGS = "Settings"
    TENANT = "Tenant"
    GPU_POOL = "GPUPool"
    SHARING_PROFILE = "SharingProfile"
    GPU_POLICY = "GPUPolicy"
    EXEMPTION = "Exemption"
    RECLAIM_POLICY = "ReclaimPolicy"
    POLICY_TEST = "PolicyTest"


LATER_KINDS: Final[dict[str, str]] = {
    "DeschedulePolicy": "moves work off hot nodes and gathers it under low load",
    "GPUAutoscaler": "sets replicas by GPU utilisation",
    "PartitionPolicy": "chooses how nodes are cut and shared",
}

LATER_FIELDS: Final[dict[Kind, dict[str, str]]] = {
    Kind.SETTINGS: {},
    Kind.TENANT: {},
    Kind.GPU_POOL: {},
    Kind.SHARING_PROFILE: {},
    Kind.GPU_POLICY: {
        "spec.placement": "node requirements beyond those of the profile",
    },
    Kind.EXEMPTION: {},
    Kind.RECLAIM_POLICY: {
        "spec.idle": "reports or ends work that holds a GPU and does not use it",
    },
    Kind.POLICY_TEST: {},
}

LATER_VALUES: Final[dict[tuple[Kind, str], frozenset[str]]] = {
    (Kind.SHARING_PROFILE, "spec.mode"): frozenset({"DRA", "vGPU"}),
}
