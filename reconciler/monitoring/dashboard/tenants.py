# SPDX-License-Identifier: Apache-2.0
"""What tenants have, lend, borrow and wait for."""

from typing import Final

from reconciler.monitoring.dashboard.panels import Kind, Panel, Query, Row, Unit, lines

_TENANT: Final = 'tenant=~"$tenant"'
_RATE: Final = "[$__rate_interval]"


def _of(metric: str) -> str:
    return f"sum by (tenant) (max by (tenant, pool) ({metric}{{{_TENANT}}}))"


TENANTS: Final = Row(
    "Tenants",
    (
        Panel(
            "Quota",
            Kind.TABLE,
            Unit.NUMBER,
            (
                Query(_of("sluice_tenant_guarantee_gpus"), "Guarantee"),
                Query(_of("sluice_tenant_ceiling_gpus"), "Ceiling"),
                Query(_of("sluice_tenant_used_gpus"), "Used"),
                Query(_of("sluice_tenant_borrowed_gpus"), "Borrowed"),
                Query(_of("sluice_tenant_lent_gpus"), "Lent"),
                Query(_of("sluice_tenant_owed_gpus"), "Owed"),
                Query(f"max by (tenant) (sluice_tenant_pending_pods{{{_TENANT}}})", "Pods waiting"),
            ),
            "GPUs over all pools. Without a ceiling there is no limit.",
            width=24,
        ),
        lines("Used", f"tenant:sluice_used:gpus{{{_TENANT}}}", "{{tenant}}"),
        lines("Borrowed", _of("sluice_tenant_borrowed_gpus"), "{{tenant}}"),
        lines(
            "Owed",
            _of("sluice_tenant_owed_gpus"),
            "{{tenant}}",
            description="What waiting pods could have within the guarantee.",
        ),
        lines(
            "Pods waiting",
            f"max by (tenant) (sluice_tenant_pending_pods{{{_TENANT}}})",
            "{{tenant}}",
        ),
        lines(
            "Longest wait",
            f"tenant:sluice_oldest_wait:seconds{{{_TENANT}}}",
            "{{tenant}}",
            Unit.SECONDS,
        ),
        lines(
            "Waits of released pods, 9 of 10 are shorter",
            "histogram_quantile(0.9, sum by (tenant, le) "
            f"(rate(sluice_pod_wait_seconds_bucket{{{_TENANT}}}{_RATE})))",
            "{{tenant}}",
            Unit.SECONDS,
        ),
        lines(
            "Pods released",
            f"sum by (tenant) (rate(sluice_pods_released_total{{{_TENANT}}}{_RATE}))",
            "{{tenant}}",
            Unit.PER_SECOND,
        ),
        lines(
            "Work taken back",
            "sum by (tenant, action, outcome) "
            f"(rate(sluice_disruptions_total{{{_TENANT}}}{_RATE}))",
            "{{tenant}}: {{action}} {{outcome}}",
            Unit.PER_SECOND,
        ),
        lines(
            "GPUs charged, by sharing mode",
            f"sum by (mode) (rate(sluice_gpu_seconds_total{{{_TENANT}}}{_RATE}))",
            "{{mode}}",
        ),
    ),
)
