# SPDX-License-Identifier: Apache-2.0
"""What tenants wait for, and how they are counted."""

from typing import Final

from tests.integration.monitoring.cases.case import Case

_TENANT_A: Final = 'tenant="a",pool=""'

TENANTS: Final = (
    Case(
        "SluiceQuotaWaitLong",
        {
            'sluice_tenant_oldest_wait_seconds{tenant="a"}': "0+60x400",
            'sluice_tenant_pending_pods{tenant="a"}': "7x400",
        },
        300,
        {"tenant": "a"},
        "A pod of tenant a has waited for 5h 0m 0s",
        "It waits for quota or for room. 7 pods of the tenant wait in all.",
        (
            {'sluice_tenant_oldest_wait_seconds{tenant="a"}': "0+30x400"},
            {'sluice_tenant_oldest_wait_seconds{tenant="a"}': "0+60x250 0x100"},
        ),
    ),
    Case(
        "SluiceGuaranteeOwed",
        {f"sluice_tenant_owed_gpus{{{_TENANT_A}}}": "2x400"},
        60,
        {"tenant": "a"},
        "Tenant a lacks 2 GPUs of its guarantee",
        "Its pods have waited for 30 minutes for what is theirs: nodes are missing, or what was "
        "lent does not come back.",
        (
            {f"sluice_tenant_owed_gpus{{{_TENANT_A}}}": "0x400"},
            {f"sluice_tenant_owed_gpus{{{_TENANT_A}}}": "2x20 0 2x20 0 2x20"},
        ),
    ),
    Case(
        "SluiceGuaranteeOwed",
        {'sluice_tenant_owed_gpus{tenant="a",pool="h100"}': "2x400"},
        60,
        {"tenant": "a", "pool": "h100"},
        "Tenant a lacks 2 GPUs of its guarantee",
        "Its pods have waited for 30 minutes for what is theirs in pool h100: nodes are missing, "
        "or what was lent does not come back.",
        (),
    ),
    Case(
        "SluiceGuaranteesOvercommitted",
        {'sluice_overcommitted_gpus{pool="h100"}': "8x400"},
        90,
        {"pool": "h100"},
        "Guarantees exceed what there is by 8 GPUs",
        "Nodes of pool h100 are fewer than what tenants are promised: not all of them can have it "
        "at once.",
        ({'sluice_overcommitted_gpus{pool="h100"}': "0x400"},),
    ),
    Case(
        "SluiceTenantOverCeiling",
        {
            f"sluice_tenant_used_gpus{{{_TENANT_A}}}": "6x400",
            f"sluice_tenant_ceiling_gpus{{{_TENANT_A}}}": "4x400",
        },
        90,
        {"tenant": "a"},
        "Tenant a uses 2 GPUs more than its ceiling",
        "A ceiling was lowered, or a namespace was moved. Nobody is evicted for it, and nothing "
        "is added until it fits.",
        (
            {
                f"sluice_tenant_used_gpus{{{_TENANT_A}}}": "4x400",
                f"sluice_tenant_ceiling_gpus{{{_TENANT_A}}}": "4x400",
            },
            # It has no ceiling.
            {f"sluice_tenant_used_gpus{{{_TENANT_A}}}": "6x400"},
        ),
    ),
    Case(
        "SluiceOddPods",
        {'sluice_odd_pods{kind="SkippedGate"}': "2x400"},
        30,
        {"kind": "SkippedGate"},
        "2 pods are not charged as they should be: SkippedGate",
        "They are counted all the same, so that no ceiling is passed for them. SkippedGate are "
        "pods that got GPUs without Sluice.",
        ({'sluice_odd_pods{kind="SkippedGate"}': "0x400"},),
    ),
)
