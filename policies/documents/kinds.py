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
    POLICY_TEST = "PolicyTest"


LATER_KINDS: Final[dict[str, str]] = {
    "DeschedulePolicy": "moves work off hot nodes and gathers it under low load",
    "GPUAutoscaler": "sets replicas by GPU utilisation",
    "PartitionPolicy": "chooses how nodes are cut and shared",
    "ReclaimPolicy": "says how running work may be disturbed",
}

LATER_FIELDS: Final[dict[Kind, dict[str, str]]] = {
    Kind.SETTINGS: {
        "spec.budget": "one budget for everything that evicts or scales down",
    },
    Kind.TENANT: {
        "spec.lending": "after how long an unused guarantee may be lent",
        "spec.minRuntime": "how long a borrowed GPU is not taken back",
        "spec.priority": "the order between tenants",
        "spec.quota.memory": "a quota of GPU memory",
        "spec.quota.pools": "a quota for each pool of nodes",
        "spec.quota.resources": "a quota for each resource name",
        "spec.weight": "the share of what is idle",
        "spec.whenOverQuota": "whether a pod over its quota waits or is refused",
    },
    Kind.GPU_POOL: {},
    Kind.SHARING_PROFILE: {},
    Kind.GPU_POLICY: {
        "spec.placement": "node requirements beyond those of the profile",
    },
    Kind.EXEMPTION: {},
    Kind.POLICY_TEST: {},
}

LATER_VALUES: Final[dict[tuple[Kind, str], frozenset[str]]] = {
    (Kind.SHARING_PROFILE, "spec.mode"): frozenset({"DRA", "vGPU"}),
}
