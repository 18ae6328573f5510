# SPDX-License-Identifier: Apache-2.0
"""Alerts on answers: the webhook's to the API server, and the extender's to a scheduler."""

from typing import Final

from reconciler.monitoring.rules import Alert, Group, Level, Severity

_ERRORS: Final = 0.01
_REVIEW_SECONDS: Final = 0.5
"""A tenth of what the API server waits before it takes the answer for none."""
_EXTENDER_SECONDS: Final = 0.1
"""Half of what kube-scheduler waits."""

REVIEWS: Final = Group(
    "sluice-review-alerts",
    (
        Alert(
            "SluiceReviewErrors",
            Level.SLUICE,
            Severity.CRITICAL,
            "5m",
            f"sluice:review_errors:ratio5m > {_ERRORS}",
            "Sluice could not decide {{ $value | humanizePercentage }} of the {{ $labels.phase }} "
            "reviews",
            "They got the configured failure mode, by default a refusal of GPU pods.",
        ),
        Alert(
            "SluiceReviewLatencyHigh",
            Level.SLUICE,
            Severity.WARNING,
            "10m",
            f"sluice:review_duration_seconds:p99_5m > {_REVIEW_SECONDS}",
            "One in 100 {{ $labels.phase }} reviews takes {{ $value | humanizeDuration }} or more",
            "Every GPU pod is created so much later; the API server gives up after 5 s.",
        ),
        Alert(
            "SluiceExtenderFailing",
            Level.SLUICE,
            Severity.WARNING,
            "1m",
            "sum by (verb) (increase(sluice_extender_failures_total[15m])) > 0",
            "The extender failed to answer {{ $value | humanize }} times on {{ $labels.verb }}",
            "In these cases of the last 15 minutes every node passed, and memory and load were "
            "not looked at.",
        ),
        Alert(
            "SluiceExtenderSlow",
            Level.SLUICE,
            Severity.WARNING,
            "10m",
            f"sluice:extender_duration_seconds:p99_5m > {_EXTENDER_SECONDS}",
            "One in 100 answers of the extender takes {{ $value | humanizeDuration }} or more",
            "kube-scheduler goes on without an answer after 200 ms ({{ $labels.verb }}).",
        ),
        Alert(
            "SluiceExtenderGone",
            Level.SLUICE,
            Severity.WARNING,
            "5m",
            # Processes that are no extender show 0 for ever.
            "max(max_over_time(sluice_extender_active[1d])) == 1\n"
            "unless on () max(sluice_extender_active) == 1",
            "No extender is active, and there was one within a day",
            "kube-scheduler goes on without: devices are counted, memory and load are not looked "
            "at.",
        ),
    ),
)
