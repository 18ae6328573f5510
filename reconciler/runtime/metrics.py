# SPDX-License-Identifier: Apache-2.0
"""The metrics of every Sluice process: what there is, and how it is counted.

Label values come from enumerations or from names in policy documents, never from requests, so
that nobody can grow the number of series. Serving them must not be here.
"""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder

from policies.model.decision import Decision
from policies.model.policy import Enforcement
from policies.model.reasons import Reason
from policies.model.request import Phase, Request
from policies.model.settings import Mode
from reconciler.runtime.metric_specs import METRICS, Kind, MetricSpec

_RESOURCES: Final = {
    ("pods", "ephemeralcontainers"): "pods/ephemeralcontainers",
    ("pods", "resize"): "pods/resize",
} | {
    (resource, ""): resource
    for resource in (
        *("pods", "deployments", "statefulsets", "daemonsets", "replicasets"),
        *("replicationcontrollers", "jobs", "cronjobs"),
        *("resourceclaims", "resourceclaimtemplates"),
    )
}
"""By resource and subresource; anything else counts as `other`."""
_OTHER: Final = "other"


class Metrics:
    """Every collector of one process, in a registry of its own; safe to use from any thread.

    Methods say what happened. Those of the hot path look their series up in a dict, since
    `labels()` costs more than the increment.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._counters = {
            spec.name: Counter(spec.name, spec.help, spec.labels, registry=self.registry)
            for spec in _of(Kind.COUNTER)
        }
        self._gauges = {
            spec.name: Gauge(spec.name, spec.help, spec.labels, registry=self.registry)
            for spec in _of(Kind.GAUGE)
        }
        self._histograms = {
            spec.name: Histogram(
                spec.name, spec.help, spec.labels, buckets=spec.buckets, registry=self.registry
            )
            for spec in _of(Kind.HISTOGRAM)
        }
        for spec in _of(Kind.COUNTER):
            for values in spec.first:
                self._counters[spec.name].labels(*values)
        duration = self._histograms["sluice_review_duration_seconds"]
        self._mutate_duration = duration.labels(str(Phase.MUTATE))
        self._validate_duration = duration.labels(str(Phase.VALIDATE))
        self._reviews: dict[tuple[object, ...], Counter] = {}
        self._rewrites: dict[tuple[object, ...], Counter] = {}

    def reviewed(self, request: Request, decision: Decision, mode: Mode, seconds: float) -> None:
        """Count one answered review: what was decided, and how long it took."""
        resource = _RESOURCES.get((request.resource, request.subresource), _OTHER)
        reason = _deciding_reason(decision) if decision.violations else None
        mutates, enforced = request.phase is Phase.MUTATE, mode is Mode.ENFORCE
        # Of booleans and strings: an enumeration's members are hashed by Python code.
        key = (resource, mutates, decision.allowed, reason, request.dry_run, enforced)
        series = self._reviews.get(key)
        if series is None:
            series = self._reviews[key] = self._counters["sluice_reviews_total"].labels(
                phase=str(request.phase),
                resource=resource,
                verdict=str(decision.verdict),
                reason=str(reason or ""),
                dry_run=str(request.dry_run).lower(),
                mode=str(mode),
            )
        series.inc()
        duration = self._mutate_duration if mutates else self._validate_duration
        duration.observe(seconds)
        if decision.violations:
            self._count_violations(decision)
        if decision.patch and decision.profile:
            self._count_rewrite(decision, mode)

    def _count_violations(self, decision: Decision) -> None:
        counter = self._counters["sluice_violations_total"]
        for violation in decision.violations:
            counter.labels(
                policy=violation.policy or "",
                reason=str(violation.reason),
                enforcement=str(violation.enforcement),
            ).inc()

    def _count_rewrite(self, decision: Decision, mode: Mode) -> None:
        key = (decision.policy, decision.profile, mode is Mode.ENFORCE)
        series = self._rewrites.get(key)
        if series is None:
            series = self._rewrites[key] = self._counters["sluice_rewrites_total"].labels(
                policy=decision.policy or "", profile=decision.profile, mode=str(mode)
            )
        series.inc()

    def internal_error(self, phase: Phase, cause: str) -> None:
        """Count a review that no decision was made for; `cause` is from an enumeration."""
        self._counters["sluice_internal_errors_total"].labels(phase=str(phase), cause=cause).inc()

    def call_refused(self, status: int) -> None:
        """Count an HTTP call that was no review and got a status of 400 or more."""
        self._counters["sluice_http_refusals_total"].labels(code=str(status)).inc()

    def audit_written(self, lines: int) -> None:
        """Count audit lines handed to the operating system."""
        self._counters["sluice_audit_lines_written_total"].inc(lines)

    def audit_dropped(self, lines: int, cause: str) -> None:
        """Count audit lines that were lost; `cause` is from an enumeration."""
        self._counters["sluice_audit_lines_dropped_total"].labels(cause=cause).inc(lines)

    def policies_loaded(self, generation: str, timestamp: float) -> None:
        """State which set is served from now on, and when (Unix seconds) it was loaded."""
        info = self._gauges["sluice_policy_set_info"]
        info.clear()
        info.labels(generation=generation).set(1)
        self.policies_sound(timestamp)

    def policies_sound(self, timestamp: float) -> None:
        """State when (Unix seconds) the documents were loaded, for one who decides on no pod."""
        self._gauges["sluice_policy_set_loaded_timestamp_seconds"].set(timestamp)
        self._gauges["sluice_policy_set_broken"].set(0)

    def policies_broken(self) -> None:
        """State that the documents as they are now cannot be served; the old set stays."""
        self._counters["sluice_policy_set_load_failures_total"].inc()
        self._gauges["sluice_policy_set_broken"].set(1)

    def facts_age(self, seconds: float) -> None:
        """State how old the facts may be; 0 while the watches are live."""
        self._gauges["sluice_facts_age_seconds"].set(seconds)

    def tls_reloaded(self, *, succeeded: bool) -> None:
        """Count an attempt to take up new certificate files."""
        result = "Success" if succeeded else "Failure"
        self._counters["sluice_tls_reloads_total"].labels(result=result).inc()

    def certificate_expires(self, timestamp: float) -> None:
        """State when (Unix seconds) the certificate that is served ends."""
        self._gauges["sluice_certificate_expiry_timestamp_seconds"].set(timestamp)

    def counter(self, name: str) -> Counter:
        """Return a counter by its name in METRICS, for who counts what is not a review's."""
        return self._counters[name]

    def gauge(self, name: str) -> Gauge:
        """Return a gauge by its name in METRICS."""
        return self._gauges[name]

    def histogram(self, name: str) -> Histogram:
        """Return a histogram by its name in METRICS."""
        return self._histograms[name]

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the text and its content type, in the format that the Accept header prefers."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


def _of(kind: Kind) -> Iterable[MetricSpec]:
    return (spec for spec in METRICS if spec.kind is kind)


def _deciding_reason(decision: Decision) -> Reason | None:
    """Return the first reason that denied; None for what was allowed."""
    if decision.allowed:
        return None
    for violation in decision.violations:
        if violation.enforcement is Enforcement.ENFORCE:
            return violation.reason
    return None
