# SPDX-License-Identifier: Apache-2.0
"""The one list of metrics; docs/reference/metrics.md is generated from it.

Counting must not be here (reconciler.runtime.metrics).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reconciler.kube.errors import error_names


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
    first: tuple[tuple[str, ...], ...] = ()
    """Values of the labels whose series are there from the start, at 0: a rate does not see the
    step with which a series begins, so that the first failure would go unnoticed."""


_REVIEW_BUCKETS: Final = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0),
)
_PLAN_BUCKETS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_WAIT_BUCKETS: Final = (0.05, 0.1, 0.5, 1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0)
_TENANT_POOL: Final = ("tenant", "pool")
_CAUSES: Final = ("Exception", "NoPolicies", "Deadline")
_API_ERRORS: Final = tuple((name,) for name in error_names())
_VERBS: Final = (("filter",), ("prioritize",), ("choose",), ("preempt",))

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
        first=tuple((phase, cause) for phase in ("Mutate", "Validate") for cause in _CAUSES),
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
        first=(("QueueFull",), ("WriteFailed",), ("Unserializable",), ("Closed",)),
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
        "Changes of the certificate to serve with that were taken up, or could not be.",
        ("result",),
        first=(("Success",), ("Failure",)),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_certificate_expiry_timestamp_seconds",
        "When the certificate being served ends.",
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_certificates_remaining_seconds",
        "How long the certificate that the leader keeps is valid from now on; 0 if there is none "
        "that can be used. Only the leader has it.",
        ("certificate",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_certificates_refused_objects",
        "Secrets and webhook configurations that the leader does not write, since others manage "
        "them.",
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_certificate_rotations_total",
        "Certificates that the leader has put in the place of others.",
        ("certificate",),
        first=(("Authority",), ("Serving",)),
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_certificate_failures_total",
        "Writes of certificates that the API server refused; they are tried again.",
        ("error",),
        first=_API_ERRORS,
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
        first=_API_ERRORS,
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_mirror_failures_total",
        "Custom resources of documents in files that could not be written; they are tried again.",
        ("error",),
        first=_API_ERRORS,
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_status_failures_total",
        "Statuses of tenants that could not be written; they are tried again.",
        ("error",),
        first=_API_ERRORS,
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
    MetricSpec(
        Kind.GAUGE,
        "sluice_tenant_guarantee_gpus",
        "What a tenant always gets back. The pool's label is empty for the default pool.",
        _TENANT_POOL,
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_tenant_ceiling_gpus",
        "What a tenant can have at most; no series where there is no limit.",
        _TENANT_POOL,
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_tenant_used_gpus",
        "What a tenant's released pods are charged, until they have ended or are gone. "
        "An empty tenant stands for pods with GPUs in namespaces of none.",
        _TENANT_POOL,
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_tenant_borrowed_gpus",
        "The part of what a tenant uses above its guarantee.",
        _TENANT_POOL,
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_tenant_lent_gpus",
        "The part of a tenant's guarantee that others use, pro rata.",
        _TENANT_POOL,
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_tenant_owed_gpus",
        "What a tenant's waiting pods could have within its guarantee and do not have yet.",
        _TENANT_POOL,
    ),
    MetricSpec(Kind.GAUGE, "sluice_tenant_pending_pods", "Pods that wait for quota.", ("tenant",)),
    MetricSpec(
        Kind.GAUGE,
        "sluice_tenant_oldest_wait_seconds",
        "How long the tenant's pod has waited that has waited the longest; 0 if none waits.",
        ("tenant",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_odd_pods",
        "Pods that are counted, and not as they should be: charged never, to another tenant, "
        "another amount, or of no tenant.",
        ("kind",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_overcommitted_gpus",
        "By how much the guarantees of all tenants exceed what the nodes of a pool have.",
        ("pool",),
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_gpu_seconds_total",
        "GPUs charged, times how long. mode is that of the pod's sharing profile.",
        ("tenant", "pool", "mode"),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_gpus_capacity_milli",
        "What the nodes of a model of GPU offer, in milli-GPU. Models beyond the first 100 are "
        "counted as others.",
        ("model",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_gpus_allocated_milli",
        "What of that is given to pods on those nodes, in milli-GPU.",
        ("model",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_gpu_fragmentation_milli",
        "What of the rest a typical pod of this cluster could not use, on average (FGD), in "
        "milli-GPU; no series while no pods tell what is typical.",
        ("model",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_gpu_memory_stranded_mib",
        "Memory of devices that are given out wholly, which the pods on them do not state to need, "
        "in MiB. A pod that states nothing needs its share.",
        ("model",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_gpu_utilisation_ratio",
        "Mean utilisation, from 0 to 1, of the cards of a model for which it is known; no series "
        "where it is known of none.",
        ("model",),
    ),
    MetricSpec(
        Kind.HISTOGRAM,
        "sluice_extender_duration_seconds",
        "From a scheduler's question having been read to its answer being ready.",
        ("verb",),
        _REVIEW_BUCKETS,
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_extender_failures_total",
        "Questions that were answered neutrally for a fault of Sluice.",
        ("verb",),
        first=_VERBS,
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_extender_active",
        "1 while this process is the extender that answers.",
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_extender_assumed_pods",
        "Pods that were given a node and have not been seen bound to it yet.",
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_telemetry_looks_total",
        "How often a source of telemetry was asked; Partial where something was missing.",
        ("source", "result"),
    ),
    MetricSpec(
        Kind.COUNTER,
        "sluice_telemetry_samples_total",
        "What became of samples; only those that were Taken are used.",
        ("outcome",),
    ),
    MetricSpec(
        Kind.GAUGE,
        "sluice_telemetry_nodes",
        "Nodes of whose cards something is known now (Fresh), or was lately (Stale).",
        ("state",),
    ),
)
"""In the order of the reference page."""
