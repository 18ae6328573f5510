# SPDX-License-Identifier: Apache-2.0
"""How Sluice itself does: the webhook, the reconciler, the extender."""

from typing import Final

from reconciler.monitoring.dashboard.panels import Kind, Panel, Query, Row, Unit, lines

_RATE: Final = "[$__rate_interval]"


def _quantiles(title: str, histogram: str, label: str) -> Panel:
    def query(quantile: float) -> Query:
        return Query(
            f"histogram_quantile({quantile}, "
            f"sum by ({label}, le) (rate({histogram}_bucket{_RATE})))",
            f"{{{{{label}}}}} p{round(100 * quantile)}",
        )

    return Panel(title, Kind.TIME_SERIES, Unit.SECONDS, (query(0.5), query(0.99)))


def _rates(title: str, counter: str, *labels: str) -> Panel:
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    expr = f"sum by ({', '.join(labels)}) (rate({counter}{_RATE}))"
    return lines(title, expr, legend, Unit.PER_SECOND)


WEBHOOK: Final = Row(
    "Webhook",
    (
        _rates("Reviews", "sluice_reviews_total", "phase", "verdict"),
        _quantiles("Time for a review", "sluice_review_duration_seconds", "phase"),
        _rates("Failed checks", "sluice_violations_total", "reason", "enforcement"),
        _rates("Pods rewritten", "sluice_rewrites_total", "policy", "profile"),
        _rates("Reviews not decided", "sluice_internal_errors_total", "cause"),
        Panel(
            "Certificate and documents",
            Kind.TABLE,
            Unit.SECONDS,
            (
                Query(
                    "min by (instance) (sluice_certificate_expiry_timestamp_seconds > 0) - time()",
                    "Certificate ends in",
                ),
                Query(
                    "time() - max by (instance) (sluice_policy_set_loaded_timestamp_seconds > 0)",
                    "Documents loaded before",
                ),
            ),
        ),
    ),
)

RECONCILER: Final = Row(
    "Reconciler and extender",
    (
        lines("Leader", "max by (instance) (sluice_leader)", "{{instance}}"),
        _quantiles("Time for a plan", "sluice_plan_duration_seconds", "controller"),
        _rates("Releases refused", "sluice_release_failures_total", "error"),
        _rates("Mirrors not written", "sluice_mirror_failures_total", "error"),
        _rates("Statuses not written", "sluice_status_failures_total", "error"),
        Panel(
            "Audit log",
            Kind.TIME_SERIES,
            Unit.PER_SECOND,
            (
                Query(f"sum(rate(sluice_audit_lines_written_total{_RATE}))", "written"),
                Query(
                    f"sum by (cause) (rate(sluice_audit_lines_dropped_total{_RATE}))",
                    "lost: {{cause}}",
                ),
            ),
        ),
        lines("Odd pods", "max by (kind) (sluice_odd_pods)", "{{kind}}"),
        lines("Guarantees beyond nodes", "max by (pool) (sluice_overcommitted_gpus)", "{{pool}}"),
        lines(
            "Age of facts",
            "max by (instance) (sluice_facts_age_seconds)",
            "{{instance}}",
            Unit.SECONDS,
        ),
        _rates("Looks at telemetry", "sluice_telemetry_looks_total", "source", "result"),
        _quantiles("Time for an answer", "sluice_extender_duration_seconds", "verb"),
        _rates("Answers that failed", "sluice_extender_failures_total", "verb"),
        lines("Pods assumed on nodes", "sum(sluice_extender_assumed_pods)", "pods"),
    ),
)
