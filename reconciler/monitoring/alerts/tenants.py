# SPDX-License-Identifier: Apache-2.0
"""Alerts on what tenants wait for, and on how they are counted."""

from typing import Final

from reconciler.monitoring.rules import Alert, Group, Level, Severity

_LONGEST_WAIT_SECONDS: Final = 4 * 3600

TENANTS: Final = Group(
    "sluice-tenant-alerts",
    (
        Alert(
            "SluiceQuotaWaitLong",
            Level.TENANT,
            Severity.WARNING,
            "15m",
            f"tenant:sluice_oldest_wait:seconds > {_LONGEST_WAIT_SECONDS}",
            "A pod of tenant {{ $labels.tenant }} has waited for {{ $value | humanizeDuration }}",
            "It waits for quota or for room. {{ with printf "
            "\"max(sluice_tenant_pending_pods{tenant='%s'})\" $labels.tenant | query }}"
            "{{ . | first | value }} pods of the tenant wait in all.{{ end }}",
        ),
        Alert(
            "SluiceGuaranteeOwed",
            Level.TENANT,
            Severity.CRITICAL,
            "30m",
            "max by (tenant, pool) (sluice_tenant_owed_gpus) > 0",
            "Tenant {{ $labels.tenant }} lacks {{ $value }} GPUs of its guarantee",
            "Its pods have waited for 30 minutes for what is theirs"
            "{{ with $labels.pool }} in pool {{ . }}{{ end }}: nodes are missing, or what was lent "
            "does not come back.",
        ),
        Alert(
            "SluiceGuaranteesOvercommitted",
            Level.TENANT,
            Severity.WARNING,
            "1h",
            "max by (pool) (sluice_overcommitted_gpus) > 0",
            "Guarantees exceed what there is by {{ $value }} GPUs",
            "Nodes{{ with $labels.pool }} of pool {{ . }}{{ end }} are fewer than what tenants are "
            "promised: not all of them can have it at once.",
        ),
        Alert(
            "SluiceTenantOverCeiling",
            Level.TENANT,
            Severity.INFO,
            "1h",
            "max by (tenant, pool) (sluice_tenant_used_gpus)\n"
            "- max by (tenant, pool) (sluice_tenant_ceiling_gpus) > 0",
            "Tenant {{ $labels.tenant }} uses {{ $value }} GPUs more than its ceiling",
            "A ceiling was lowered, or a namespace was moved. Nobody is evicted for it, and "
            "nothing is added until it fits.",
        ),
        Alert(
            "SluiceOddPods",
            Level.WORKLOAD,
            Severity.WARNING,
            "15m",
            "max by (kind) (sluice_odd_pods) > 0",
            "{{ $value }} pods are not charged as they should be: {{ $labels.kind }}",
            "They are counted all the same, so that no ceiling is passed for them. SkippedGate are "
            "pods that got GPUs without Sluice.",
        ),
    ),
)
