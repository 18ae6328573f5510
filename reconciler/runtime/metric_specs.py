# SPDX-License-Identifier: Apache-2.0
"""The one list of metrics; docs/reference/metrics.md is generated from it.

Counting must not be here (reconciler.runtime.metrics).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """Prometheus' types of metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric: its name with the unit in it, what it means, and its labels."""

    kind: Kind
    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram's."""


_REVIEW_BUCKETS: Final = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0),
)
_PLAN_BUCKETS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_WAIT_BUCKETS: Final = (0.05, 0.1, 0.5, 1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0)

METRICS: Final = (
    MetricSpec(
        Kind.COUNTER,
        "sluice_reviews_total",
        "Admission reviews answered. reason is the first that denied, empty if allowed; "
        "in mode Observe the verdict is what would have been.",
        ("phase", "resource", "verdict", "reason", "dry_run", "mode"),
    ),
    MetricSpec(
        Kind.HISTOGRAM,
        "sluice_review_duration_seconds",
        "From the whole request having been read to its answer being ready.",
        ("phase",),
        _REVIEW_BUCKETS,
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_violations_total",
        "Failed checks, also those that only warn or audit. policy is empty for built-in checks.",
        ("policy", "reason", "enforcement"),
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_rewrites_total",
        "Pods whose GPU request was rewritten, by the policy that did it and the form it gave.",
        ("policy", "profile", "mode"),
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_internal_errors_total",
        "Reviews that could not be decided and got the configured failure mode.",
        ("phase", "cause"),
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_http_refusals_total",
        "HTTP calls that were no well-formed review and got a status of 400 or more.",
        ("code",),
    ),
    MetricSpec(Kind.COUNTER, "sluice_audit_lines_written_total", "Lines written to the audit log."),
    MetricSpec(
        Kind.COUNTER,
        "sluice_audit_lines_dropped_total",
        "Lines that the audit log lost: the queue was full, or writing failed.",
        ("cause",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_policy_set_info",
        "Always 1; the label is the generation of the policy set being served.",
        ("generation",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_policy_set_loaded_timestamp_seconds",
        "When the policy set being served was loaded.",
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_policy_set_broken",
        "1 while the documents cannot be loaded and an older set is served in their place.",
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_policy_set_load_failures_total",
        "Attempts to load the documents that found errors in them.",
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_facts_age_seconds",
        "How old the picture of nodes and namespaces may be; 0 while the watches are live.",
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_tls_reloads_total",
        "Changes of the certificate files that were taken up, or could not be.",
        ("result",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_certificate_expiry_timestamp_seconds",
        "When the certificate being served ends.",
    ),
    MetricSpec(
        Kind.GAUGE, "sluice_leader", "1 while this process leads, that is, runs controllers."
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_controllers_failures_total",
        "Controllers that died of a fault of Sluice; another process then leads.",
    ),
    MetricSpec(
        Kind.HISTOGRAM,
        "sluice_plan_duration_seconds",
        "How long a controller took to plan on the newest picture.",
        ("controller",),
        _PLAN_BUCKETS,
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_pods_released_total",
        "Pods that were charged and whose gate was taken off.",
        ("tenant", "pool", "borrowed"),
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_release_failures_total",
        "Releases that the API server refused; they are tried again.",
        ("error",),
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_disruptions_total",
        "What was done to running work to take back what is lent: notices, evictions, deletions, "
        "by the tenant that the pod is charged to.",
        ("tenant", "action", "outcome"),
    ),
    MetricSpec(
        Kind.HISTOGRAM,
        "sluice_pod_wait_seconds",
        "From a pod's creation to its release.",
        ("tenant",),
        _WAIT_BUCKETS,
    ),
)
"""In the order of the reference page."""
